package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lines is a file with a JSON document in each line.
type lines struct {
	lock    sync.Mutex
	file    *os.File
	buffer  *bufio.Writer
	encoder *json.Encoder
}

func newLines(folder, name string) (*lines, error) {
	file, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		return nil, err
	}
	buffer := bufio.NewWriter(file)
	return &lines{file: file, buffer: buffer, encoder: json.NewEncoder(buffer)}, nil
}

func (l *lines) add(line any) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.encoder.Encode(line)
}

func (l *lines) close() error {
	l.lock.Lock()
	defer l.lock.Unlock()
	if err := l.buffer.Flush(); err != nil {
		return err
	}
	return l.file.Close()
}

// The clock of both: Go tells the time since an arbitrary moment only.
var (
	zero          = time.Now()
	zeroMonotonic = monotonic()
)

func monotonic() int64 {
	var now unix.Timespec
	// The clock is always there.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}

// nanoseconds of CLOCK_MONOTONIC at a time.
func nanoseconds(at time.Time) int64 {
	return zeroMonotonic + at.Sub(zero).Nanoseconds()
}

// sentFrame and wholeFrame are what Narrows reads of frames, targetRate of rates.
type sentFrame struct {
	Frame uint32 `json:"frame"`
	At    int64  `json:"at_ns"`
	Bytes int    `json:"bytes"`
	Key   bool   `json:"key"`
}

type wholeFrame struct {
	Frame uint32 `json:"frame"`
	At    int64  `json:"at_ns"`
}

type targetRate struct {
	Target float64 `json:"target_bps"`
	At     int64   `json:"at_ns"`
}
