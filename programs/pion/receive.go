package main

import (
	"context"
	"net"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"
)

const look = 50 * time.Millisecond

func receive(stopped context.Context, port, folder string) error {
	log, err := newLines(folder, "frames.ndjson")
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(stopped, "tcp4", net.JoinHostPort("0.0.0.0", port))
	if err != nil {
		return err
	}
	defer context.AfterFunc(stopped, func() { listener.Close() })()
	over, err := listener.Accept()
	if err != nil {
		return err
	}
	defer over.Close()
	connection, _, err := newConnection(nil, over)
	if err != nil {
		return err
	}
	seen := newFrames()
	connection.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		go askForKeys(stopped, connection, track, seen)
		for {
			packet, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			now := time.Now()
			if seen.add(packet, now) && log.add(wholeFrame{packet.Timestamp, nanoseconds(now)}) != nil {
				return
			}
		}
	})
	err = over.SetDeadline(time.Now().Add(signalling))
	if err == nil {
		err = answer(connection, over)
	}
	over.Close()
	listener.Close()
	if err != nil {
		return err
	}
	<-stopped.Done()
	connection.Close()
	whole, begun := seen.counts()
	if err := tell(map[string]any{"frames_received": whole, "frames_incomplete": begun - whole}); err != nil {
		return err
	}
	return log.close()
}

// askForKeys asks for a key frame whenever a decoder would wait in vain.
func askForKeys(stopped context.Context, connection *webrtc.PeerConnection, track *webrtc.TrackRemote, seen *frames) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-stopped.Done():
			return
		case now := <-ticker.C:
			if seen.wantsKey(now) {
				asked := []rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: uint32(track.SSRC())}}
				if connection.WriteRTCP(asked) != nil {
					return
				}
			}
		}
	}
}
