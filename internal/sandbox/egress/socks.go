package egress

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"syscall"
	"time"
)

// The bytes of SOCKS5 (RFC 1928) and of its passwords (RFC 1929).
const (
	socksVersion     = 5
	socksOpen        = 0 // methods
	socksPassword    = 2
	socksNone        = 0xff
	socksConnect     = 1 // command
	socksIPv4        = 1 // kinds of address
	socksName        = 3
	socksIPv6        = 4
	socksDone        = 0 // replies
	socksFailed      = 1
	socksNotAllowed  = 2
	socksUnreachable = 4
	socksClosedPort  = 5
	socksBadCommand  = 7
	socksBadAddress  = 8
)

// socksError is a reply that ends the connection.
type socksError struct {
	reply byte
	err   error
}

func (e socksError) Error() string { return e.err.Error() }

// serveSOCKS serves a connection in SOCKS5.
func (g *Gateway) serveSOCKS(client *clientConn) {
	_ = client.SetDeadline(time.Now().Add(g.service.options.HandshakeTimeout))
	to, err := g.socksRequest(client)
	if wrong := (socksError{}); errors.As(err, &wrong) {
		_ = writeSOCKS(client, wrong.reply)
	}
	if err != nil {
		_ = client.Close()
		return
	}
	_ = client.SetDeadline(time.Time{})
	g.carry(client, to, SOCKS, func(failed error) error { return writeSOCKS(client, socksReply(failed)) })
}

// socksRequest reads where the program wants to connect to.
func (g *Gateway) socksRequest(client *clientConn) (to destination, err error) {
	if err := g.socksMethod(client); err != nil {
		return to, err
	}
	var head [4]byte
	if _, err := io.ReadFull(client, head[:]); err != nil {
		return to, err
	}
	if head[0] != socksVersion || head[1] != socksConnect {
		return to, socksError{socksBadCommand, errors.New("only CONNECT is supported")}
	}
	host, err := socksHost(client, head[3])
	if err != nil {
		return to, err
	}
	var port [2]byte
	if _, err := io.ReadFull(client, port[:]); err != nil {
		return to, err
	}
	to, err = newDestination(host, binary.BigEndian.Uint16(port[:]))
	if err == nil && to.port == 0 {
		err = errors.New("port 0")
	}
	if err != nil {
		err = socksError{socksBadAddress, err}
	}
	return to, err
}

// socksMethod agrees on how the program shows who it is.
func (g *Gateway) socksMethod(client *clientConn) error {
	var head [2]byte
	if _, err := io.ReadFull(client, head[:]); err != nil {
		return err
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(client, methods); err != nil {
		return err
	}
	wanted := byte(socksOpen)
	if g.shared {
		wanted = socksPassword
	}
	for _, method := range methods {
		if method != wanted {
			continue
		}
		if _, err := client.Write([]byte{socksVersion, wanted}); err != nil || !g.shared {
			return err
		}
		return g.socksLogin(client)
	}
	_, err := client.Write([]byte{socksVersion, socksNone})
	return errors.Join(errors.New("no accepted method"), err)
}

func (g *Gateway) socksLogin(client *clientConn) error {
	var version [1]byte
	if _, err := io.ReadFull(client, version[:]); err != nil {
		return err
	}
	if _, err := readSized(client); err != nil { // the user does not matter
		return err
	}
	password, err := readSized(client)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(password, []byte(g.password)) != 1 {
		_, err := client.Write([]byte{1, 1})
		return errors.Join(errors.New("wrong password"), err)
	}
	_, err = client.Write([]byte{1, 0})
	return err
}

func socksHost(from io.Reader, kind byte) (string, error) {
	switch kind {
	case socksName:
		name, err := readSized(from)
		return string(name), err
	case socksIPv4, socksIPv6:
		raw := make([]byte, 4)
		if kind == socksIPv6 {
			raw = make([]byte, 16)
		}
		if _, err := io.ReadFull(from, raw); err != nil {
			return "", err
		}
		address, _ := netip.AddrFromSlice(raw) // its size is right
		return address.String(), nil
	}
	return "", socksError{socksBadAddress, errors.New("unknown kind of address")}
}

// readSized reads a text after its length.
func readSized(from io.Reader) ([]byte, error) {
	var size [1]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, err
	}
	text := make([]byte, size[0])
	_, err := io.ReadFull(from, text)
	return text, err
}

func writeSOCKS(to io.Writer, reply byte) error {
	_, err := to.Write([]byte{socksVersion, reply, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err
}

func socksReply(err error) byte {
	switch {
	case err == nil:
		return socksDone
	case asRefused(err) != nil:
		return socksNotAllowed
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksClosedPort
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return socksUnreachable
	}
	return socksFailed
}
