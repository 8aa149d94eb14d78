package main

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// A key frame is as large as so many others.
	keySize = 4.0
	// The largest step of the noise of frame sizes, and how much of the past it keeps.
	noiseStep, noiseMemory = 0.1, 0.8
	// Smaller frames are left out, and what they would have taken is saved.
	leastFrame = 250.0
	// RTP header with the extension of transport-wide congestion control, and the descriptor of VP8: what the estimator
	// counts beside the payload.
	packetHeader = 12 + 8 + 3
	leastRate    = 1000.0
)

// encoder makes the sizes of frames as the media schemes of Narrows do, without resolutions: the target's share of a
// frame, less the headers of its packets, times a noise that is correlated from frame to frame. Key frames come first and
// on request; what they take beyond their share is saved in the frames after them.
type encoder struct {
	frameRate, low, high float64
	random               *rand.Rand
	noise, debt, saved   float64
	begun                bool
	keyWanted            atomic.Bool
}

// newEncoder is one whose frames are the same each time.
func newEncoder(frameRate, low, high float64) *encoder {
	return &encoder{frameRate: frameRate, low: low, high: high, random: rand.New(rand.NewPCG(1, 2))}
}

// target is the rate that the encoder works with when it is asked for another.
func (e *encoder) target(asked float64) float64 {
	return min(max(asked, e.low), e.high)
}

// frame is the size of the next frame in bytes, and if it is a key frame; 0 for one that is left out.
func (e *encoder) frame(target float64) (int, bool) {
	packets := max(e.frameRate, target/(8*payloadSize))
	share := max(target-8*packetHeader*packets, leastRate) / e.frameRate / 8
	key := e.keyWanted.Swap(false) || !e.begun
	e.begun = true
	if !key && share+e.saved < leastFrame {
		e.saved += share
		return 0, false
	}
	e.noise = noiseMemory*e.noise + 2*noiseStep*(e.random.Float64()-0.5)
	share += e.saved
	e.saved = 0
	if key {
		e.debt += share * (keySize - 1)
		share *= keySize
	} else {
		back := min(e.debt, share/2)
		e.debt -= back
		share -= back
	}
	return max(1, int(share*(1+e.noise))), key
}

// captures calls for each frame that is due until it returns an error or `stopped` is closed.
func (e *encoder) captures(stopped <-chan struct{}, each func(captured time.Time) error) error {
	ticker := time.NewTicker(time.Duration(float64(time.Second) / e.frameRate))
	defer ticker.Stop()
	for {
		if err := each(time.Now()); err != nil {
			return err
		}
		select {
		case <-stopped:
			return nil
		case <-ticker.C:
		}
	}
}
