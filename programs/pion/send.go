package main

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
)

const (
	// Of a packet, as pion's own tracks make them.
	payloadSize    = 1188
	clockRate      = 90_000
	reportInterval = 100 * time.Millisecond
	// An ordinary frame of VP8 has this bit in its first byte.
	notKey = 1
)

// sender is one call that is being made.
type sender struct {
	track     *webrtc.TrackLocalStaticRTP
	estimator cc.BandwidthEstimator
	encoder   *encoder
	log       *lines
	sequence  uint16
	frames    int
	bytes     atomic.Int64
	target    float64
	began     time.Time
}

func send(stopped context.Context, address, port, folder string, wanted rates) error {
	over, err := (&net.Dialer{Timeout: signalling}).DialContext(stopped, "tcp", net.JoinHostPort(address, port))
	if err != nil {
		return err
	}
	defer over.Close()
	connection, estimator, err := newConnection(&wanted, over)
	if err != nil {
		return err
	}
	defer connection.Close()
	track, err := webrtc.NewTrackLocalStaticRTP(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: clockRate}, "video", "narrows",
	)
	if err != nil {
		return err
	}
	made, err := connection.AddTransceiverFromTrack(
		track, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly},
	)
	if err != nil {
		return err
	}
	err = offer(connection, over)
	over.Close()
	if err != nil {
		return err
	}
	if err := established(stopped, connection); err != nil {
		return err
	}
	log, err := newLines(folder, "frames.ndjson")
	if err != nil {
		return err
	}
	known, err := newLines(folder, "report.ndjson")
	if err != nil {
		return err
	}
	one := &sender{
		track: track, estimator: estimator, log: log, began: time.Now(),
		encoder: newEncoder(wanted.frames, wanted.least, wanted.most),
	}
	go one.hear(made.Sender())
	reported := make(chan float64)
	go func() { reported <- one.report(stopped, known) }()
	err = one.encoder.captures(stopped.Done(), one.capture)
	seconds := time.Since(one.began).Seconds()
	mean := <-reported
	for _, file := range []*lines{log, known} {
		if closed := file.close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return err
	}
	return tell(map[string]any{
		"target_bps":  mean,
		"sent_bps":    float64(one.bytes.Load()) * 8 / seconds,
		"frames_sent": one.frames,
	})
}

// capture makes a frame and sends its packets.
func (s *sender) capture(captured time.Time) error {
	target := s.encoder.target(float64(s.estimator.GetTargetBitrate()))
	if target != s.target {
		s.target = target
		if err := s.log.add(targetRate{target, nanoseconds(captured)}); err != nil {
			return err
		}
	}
	size, key := s.encoder.frame(target)
	if size == 0 {
		return nil
	}
	content := make([]byte, size)
	if !key {
		content[0] = notKey
	}
	stamp := uint32(captured.Sub(s.began).Seconds() * clockRate)
	// Nothing may arrive of which nobody knows that it was sent.
	if err := s.log.add(sentFrame{stamp, nanoseconds(captured), size, key}); err != nil {
		return err
	}
	payloads := (&codecs.VP8Payloader{EnablePictureID: true}).Payload(payloadSize, content)
	for at, payload := range payloads {
		packet := &rtp.Packet{Payload: payload, Header: rtp.Header{
			Version: 2, Timestamp: stamp, SequenceNumber: s.sequence, Marker: at == len(payloads)-1,
		}}
		s.sequence++
		if err := s.track.WriteRTP(packet); err != nil {
			return err
		}
	}
	s.frames++
	s.bytes.Add(int64(size))
	return nil
}

// hear reads what the receiver reports, which the interceptors need, and makes the key frames that it asks for.
func (s *sender) hear(from *webrtc.RTPSender) {
	for {
		packets, _, err := from.ReadRTCP()
		if err != nil {
			return
		}
		for _, packet := range packets {
			if _, asked := packet.(*rtcp.PictureLossIndication); asked {
				s.encoder.keyWanted.Store(true)
			}
		}
	}
}

// report writes what the congestion control knows until the end; the mean of its targets in bit/s.
func (s *sender) report(stopped context.Context, known *lines) float64 {
	ticker := time.NewTicker(reportInterval)
	defer ticker.Stop()
	var sum, count, before float64
	for {
		select {
		case <-stopped.Done():
			return sum / max(count, 1)
		case now := <-ticker.C:
			target, bits := s.encoder.target(float64(s.estimator.GetTargetBitrate())), float64(s.bytes.Load())*8
			line := s.estimator.GetStats()
			line["time_s"] = now.Sub(s.began).Seconds()
			line["target_bps"] = target
			line["sent_bps"] = (bits - before) / reportInterval.Seconds()
			before = bits
			sum, count = sum+target, count+1
			if known.add(line) != nil {
				return sum / max(count, 1)
			}
		}
	}
}
