package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/webrtc/v4"
)

// The offer and the answer may take so long.
const signalling = 10 * time.Second

// newConnection is one as pion's own example of bandwidth estimation makes it, which uses the address of `over` alone. Only
// the sender estimates.
func newConnection(estimated *rates, over net.Conn) (*webrtc.PeerConnection, cc.BandwidthEstimator, error) {
	media := &webrtc.MediaEngine{}
	if err := media.RegisterDefaultCodecs(); err != nil {
		return nil, nil, err
	}
	registry := &interceptor.Registry{}
	found := make(chan cc.BandwidthEstimator, 1)
	if estimated != nil {
		controller, err := cc.NewInterceptor(func() (cc.BandwidthEstimator, error) {
			return gcc.NewSendSideBWE(
				gcc.SendSideBWEInitialBitrate(int(estimated.start)),
				gcc.SendSideBWEMinBitrate(int(estimated.least)),
				gcc.SendSideBWEMaxBitrate(int(estimated.most)),
			)
		})
		if err != nil {
			return nil, nil, err
		}
		controller.OnNewPeerConnection(func(_ string, estimator cc.BandwidthEstimator) { found <- estimator })
		registry.Add(controller)
		if err := webrtc.ConfigureTWCCHeaderExtensionSender(media, registry); err != nil {
			return nil, nil, err
		}
	}
	if err := webrtc.RegisterDefaultInterceptors(media, registry); err != nil {
		return nil, nil, err
	}
	// There is nobody to ask for names or addresses.
	settings := webrtc.SettingEngine{}
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	// A host may have addresses of other flows.
	own, _, err := net.SplitHostPort(over.LocalAddr().String())
	if err != nil {
		return nil, nil, err
	}
	settings.SetIPFilter(func(address net.IP) bool { return address.Equal(net.ParseIP(own)) })
	api := webrtc.NewAPI(
		webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(settings),
	)
	connection, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil || estimated == nil {
		return connection, nil, err
	}
	return connection, <-found, nil
}

// offer sends ours over the connection and takes the answer.
func offer(connection *webrtc.PeerConnection, over net.Conn) error {
	description, err := connection.CreateOffer(nil)
	if err != nil {
		return err
	}
	if err := describe(connection, description, over); err != nil {
		return err
	}
	return hear(connection, over)
}

// answer takes an offer and sends ours.
func answer(connection *webrtc.PeerConnection, over net.Conn) error {
	if err := hear(connection, over); err != nil {
		return err
	}
	description, err := connection.CreateAnswer(nil)
	if err != nil {
		return err
	}
	return describe(connection, description, over)
}

// describe sends a description with all addresses in it.
func describe(connection *webrtc.PeerConnection, description webrtc.SessionDescription, over io.Writer) error {
	gathered := webrtc.GatheringCompletePromise(connection)
	if err := connection.SetLocalDescription(description); err != nil {
		return err
	}
	<-gathered
	return json.NewEncoder(over).Encode(connection.LocalDescription())
}

func hear(connection *webrtc.PeerConnection, over io.Reader) error {
	var description webrtc.SessionDescription
	if err := json.NewDecoder(over).Decode(&description); err != nil {
		return err
	}
	return connection.SetRemoteDescription(description)
}

// established waits until the call stands.
func established(stopped context.Context, connection *webrtc.PeerConnection) error {
	reached := make(chan webrtc.PeerConnectionState, 8)
	connection.OnConnectionStateChange(func(state webrtc.PeerConnectionState) { reached <- state })
	for state := connection.ConnectionState(); ; {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			return nil
		case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			return errors.New("the call could not be established: no packets of ICE or DTLS came through")
		}
		select {
		case <-stopped.Done():
			return stopped.Err()
		case state = <-reached:
		}
	}
}
