package main

import (
	"sync"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
)

const (
	// A decoder that has been waiting for a missing frame for so long asks for one that stands alone.
	patience = time.Second
	// Frames that are remembered.
	remembered = 600
)

// assembly is one frame as its packets arrive, in whatever order.
type assembly struct {
	first, last  uint16
	begins, ends bool
	key, whole   bool
	arrived      map[uint16]struct{}
}

// frames puts frames together, and follows how far a decoder gets with them.
type frames struct {
	lock  sync.Mutex
	known map[uint32]*assembly
	order []uint32
	// Whole frames by their first packet.
	starts map[uint16]*assembly
	// The packet with which the next frame to decode begins, and the one behind the newest whole frame.
	next, newest uint16
	begun        bool
	waiting      time.Time
	whole        int
}

func newFrames() *frames {
	return &frames{known: map[uint32]*assembly{}, starts: map[uint16]*assembly{}}
}

// add takes a packet that has arrived and says if its frame is whole now.
func (f *frames) add(packet *rtp.Packet, now time.Time) bool {
	var descriptor codecs.VP8Packet
	payload, err := descriptor.Unmarshal(packet.Payload)
	if err != nil || len(payload) == 0 {
		return false
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	one := f.known[packet.Timestamp]
	if one == nil {
		one = &assembly{arrived: map[uint16]struct{}{}}
		f.known[packet.Timestamp] = one
		f.order = append(f.order, packet.Timestamp)
		f.forget()
	}
	one.arrived[packet.SequenceNumber] = struct{}{}
	if descriptor.S == 1 && descriptor.PID == 0 {
		one.begins, one.first = true, packet.SequenceNumber
		one.key = payload[0]&1 == 0
	}
	if packet.Marker {
		one.ends, one.last = true, packet.SequenceNumber
	}
	if one.whole || !one.begins || !one.ends || len(one.arrived) != int(one.last-one.first)+1 {
		return false
	}
	one.whole = true
	f.whole++
	f.decode(one, now)
	return true
}

// decode goes on behind a frame that is whole.
func (f *frames) decode(one *assembly, now time.Time) {
	f.starts[one.first] = one
	before := f.next
	if !f.begun || one.key && int16(one.first-f.next) >= 0 {
		f.next, f.newest, f.begun = one.first, one.first, true
	}
	if int16(one.last+1-f.newest) > 0 {
		f.newest = one.last + 1
	}
	for following := f.starts[f.next]; following != nil; following = f.starts[f.next] {
		delete(f.starts, f.next)
		f.next = following.last + 1
	}
	switch {
	case f.next == f.newest:
		f.waiting = time.Time{}
	case f.waiting.IsZero() || f.next != before:
		f.waiting = now
	}
}

// wantsKey is true if the decoder has been waiting for too long; it is then as if it began to wait.
func (f *frames) wantsKey(now time.Time) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.waiting.IsZero() || now.Sub(f.waiting) < patience {
		return false
	}
	f.waiting = now
	return true
}

// forget leaves out what is too old to matter.
func (f *frames) forget() {
	if len(f.order) <= remembered {
		return
	}
	old := f.known[f.order[0]]
	if f.starts[old.first] == old {
		delete(f.starts, old.first)
	}
	delete(f.known, f.order[0])
	f.order = f.order[1:]
}

// counts are the frames that were whole, and those of which something has arrived.
func (f *frames) counts() (whole, seen int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	seen = f.whole
	for _, one := range f.known {
		if !one.whole {
			seen++
		}
	}
	return f.whole, seen
}
