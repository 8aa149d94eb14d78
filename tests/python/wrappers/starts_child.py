#!/usr/bin/env python3
"""Both sides are other programs: one replaces the wrapper, one is its child."""

import os
import subprocess
import sys
from pathlib import Path

import arg_parser

words = arg_parser.words("receiver")
program = str(Path(__file__).with_name("receiver_first.py"))
if words[0] == "receiver":
    os.execv(sys.executable, [sys.executable, program, *words])
elif words[0] == "sender":
    subprocess.check_call([sys.executable, program, *words])
