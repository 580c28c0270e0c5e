//go:build !linux && !darwin

package peer

import (
	"net"
	"net/netip"
)

func ofUnix(*net.UnixConn) (socket, error) { return socket{}, ErrUnknown }

func ofTCP(_, _ netip.AddrPort) (socket, error) { return socket{}, ErrUnknown }

func parentOf(int) (int, error) { return 0, ErrUnknown }

func (f *Finder) holder(uint32) (int, error) { return 0, ErrUnknown }
