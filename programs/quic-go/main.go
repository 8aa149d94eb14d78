// A bulk sender and a receiver over quic-go.
//
// "receive PORT" waits for one connection and reads its stream to the end; "send ADDRESS PORT FOLDER" fills one
// unidirectional stream until SIGTERM. Everything is as the library has it, apart from the windows of flow control, which
// must not limit what is studied. Every 100 ms the sender writes what the library knows of the path to
// FOLDER/report.ndjson.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	library  = "github.com/quic-go/quic-go"
	protocol = "narrows"
	// Enough for 1 Gbit/s over 500 ms.
	flowControlWindow = 64_000_000
	reportInterval    = 100 * time.Millisecond
	// How long the closing packets may take once the sender is told to stop.
	closing = 200 * time.Millisecond
	usage   = "usage: narrows-quic-go --version | receive PORT | send ADDRESS PORT FOLDER"
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
		fmt.Printf("quic-go %s, %s\n", version(), runtime.Version())
		return nil
	case len(words) == 2 && words[0] == "receive":
		return receive(stopped, words[1])
	case len(words) == 4 && words[0] == "send":
		return send(stopped, net.JoinHostPort(words[1], words[2]), words[3])
	}
	return errors.New(usage)
}

// version is that of the library with which this was built.
func version() string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, module := range built.Deps {
			if module.Path == library {
				return module.Version
			}
		}
	}
	return "unknown"
}

func settings() *quic.Config {
	return &quic.Config{
		InitialStreamReceiveWindow:     flowControlWindow,
		MaxStreamReceiveWindow:         flowControlWindow,
		InitialConnectionReceiveWindow: flowControlWindow,
		MaxConnectionReceiveWindow:     flowControlWindow,
	}
}

func receive(stopped context.Context, port string) error {
	certificate, err := ownCertificate()
	if err != nil {
		return err
	}
	identity := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{protocol}}
	listener, err := quic.ListenAddr(net.JoinHostPort("0.0.0.0", port), identity, settings())
	if err != nil {
		return err
	}
	connection, err := listener.Accept(stopped)
	if err != nil {
		return unlessStopped(stopped, err)
	}
	stream, err := connection.AcceptUniStream(stopped)
	if err != nil {
		return unlessStopped(stopped, err)
	}
	// A connection that its sender closes ends its stream with an error, which is the usual end here.
	go io.Copy(io.Discard, stream)
	select {
	case <-stopped.Done():
	case <-connection.Context().Done():
	}
	return nil
}

func send(stopped context.Context, to, folder string) error {
	trusting := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	connection, err := quic.DialAddr(stopped, to, trusting, settings())
	if err != nil {
		return unlessStopped(stopped, err)
	}
	failed := make(chan error, 2)
	go func() { failed <- fill(stopped, connection) }()
	go func() { failed <- report(connection, folder) }()
	select {
	case <-stopped.Done():
		err = nil
	case err = <-failed:
	}
	connection.CloseWithError(0, "done")
	// The packet that says so leaves in another goroutine.
	time.Sleep(closing)
	return err
}

// unlessStopped is no error if we were told to stop meanwhile.
func unlessStopped(stopped context.Context, err error) error {
	if stopped.Err() != nil {
		return nil
	}
	return err
}

// fill writes into one stream without end.
func fill(stopped context.Context, connection *quic.Conn) error {
	stream, err := connection.OpenUniStreamSync(stopped)
	data := make([]byte, 65_536)
	for err == nil {
		_, err = stream.Write(data)
	}
	return err
}

// report writes what the library knows of the path, line by line.
func report(connection *quic.Conn, folder string) error {
	file, err := os.Create(filepath.Join(folder, "report.ndjson"))
	if err != nil {
		return err
	}
	defer file.Close()
	lines := json.NewEncoder(file)
	started := time.Now()
	for err == nil {
		known := connection.ConnectionStats()
		err = lines.Encode(map[string]any{
			"time_s":       time.Since(started).Seconds(),
			"cwnd_bytes":   known.CongestionWindow,
			"rtt_ms":       known.SmoothedRTT.Seconds() * 1e3,
			"sent_packets": known.PacketsSent,
			"lost_packets": known.PacketsLost,
		})
		time.Sleep(reportInterval)
	}
	return err
}

// ownCertificate is one that the receiver makes when it starts.
func ownCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
}
