//go:build !linux && !darwin

package peer

import (
	"net"
	"net/netip"
)

func ofUnix(*net.UnixConn) (socket, error) { return socket{}, ErrUnsupported }

func ofTCP(_, _ netip.AddrPort) (socket, error) { return socket{}, ErrUnsupported }

func parentOf(int) (int, error) { return 0, ErrUnsupported }

func (f *Finder) holder(uint32) (int, error) { return 0, ErrUnsupported }
