"""Statistics over runs: of one sample of runs (`runs`), of two samples (`differences`), of many such pairs at
once (`permutation`), and the resulting order (`ranking`).
"""
