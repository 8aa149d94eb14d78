// A video call over pion, whose congestion control is its GCC.
//
// "receive PORT FOLDER" waits for one call; "send ADDRESS PORT FOLDER RATES" makes it, with frames of made-up content
// whose sizes follow the target of the congestion control, until SIGTERM. RATES are start, least and largest rate in bit/s and
// frames per second, with commas. The offer and the answer cross a TCP connection to PORT, which is closed then. Both
// ends write a line for each frame to FOLDER/frames.ndjson, the sender what its congestion control knows to
// FOLDER/report.ndjson. Everything is as the library has it: pacer, feedback, repetition of lost packets.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

const (
	library       = "github.com/pion/webrtc/v4"
	estimatorPart = "github.com/pion/interceptor"
	usage         = "usage: narrows-pion --version | receive PORT FOLDER |" +
		" send ADDRESS PORT FOLDER START,LEAST,MOST,FRAMES"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(words []string) error {
	stopped, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	switch {
	case len(words) == 1 && words[0] == "--version":
		fmt.Printf("pion/webrtc %s, pion/interceptor %s, %s\n",
			version(library), version(estimatorPart), runtime.Version())
		return nil
	case len(words) == 3 && words[0] == "receive":
		return unlessStopped(stopped, receive(stopped, words[1], words[2]))
	case len(words) == 5 && words[0] == "send":
		rates, err := read(words[4])
		if err != nil {
			return err
		}
		return unlessStopped(stopped, send(stopped, words[1], words[2], words[3], rates))
	}
	return errors.New(usage)
}

// version is that of a library with which this was built.
func version(path string) string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, module := range built.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "unknown"
}

// unlessStopped is no error if we were told to stop meanwhile.
func unlessStopped(stopped context.Context, err error) error {
	if stopped.Err() != nil {
		return nil
	}
	return err
}

// rates of the encoder in bit/s, and its frames per second.
type rates struct{ start, least, most, frames float64 }

func read(text string) (rates, error) {
	var found [4]float64
	words := strings.Split(text, ",")
	if len(words) != len(found) {
		return rates{}, errors.New(usage)
	}
	for at, word := range words {
		number, err := strconv.ParseFloat(word, 64)
		if err != nil || number <= 0 {
			return rates{}, fmt.Errorf("%q is not a number above 0; %s", word, usage)
		}
		found[at] = number
	}
	return rates{found[0], found[1], found[2], found[3]}, nil
}

// tell prints what is reported at the end.
func tell(document map[string]any) error {
	return json.NewEncoder(os.Stdout).Encode(document)
}
