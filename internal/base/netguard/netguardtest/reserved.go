package netguardtest

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// The system assigns no ports of this range by itself: they are below those of
// outgoing connections and of listeners on port 0.
const (
	ownPort    = 18080
	firstShare = 20000 // each process has a share from here on
	shareSize  = 16
	shares     = 700
)

var addresses, ports atomic.Int64

// ReservedAddress returns an address that no other process uses while its owner does
// not listen on it. It is a separate loopback address if the system has several.
func ReservedAddress() string {
	for range 100 {
		n, pid := int(addresses.Add(1)), os.Getpid() // enough for 62,500 processes
		address := fmt.Sprintf("127.%d.%d.%d:%d", 1+pid/250%250, 1+pid%250, 1+n%250, ownPort+n/250)
		if isFree(address) {
			return address
		}
	}
	return net.JoinHostPort("127.0.0.1", ReservedPort())
}

// ReservedPort returns a port, for a program whose address cannot be set.
func ReservedPort() string {
	first := firstShare + os.Getpid()%shares*shareSize
	for range shareSize {
		port := strconv.Itoa(first + int(ports.Add(1))%shareSize)
		if isFree(":" + port) {
			return port
		}
	}
	panic(fmt.Sprintf("netguardtest: ports %d to %d are all in use", first, first+shareSize-1))
}

func isFree(address string) bool {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
