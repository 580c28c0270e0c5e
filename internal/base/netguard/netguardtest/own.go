package netguardtest

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// Anonymous is given these ports unasked: they are below those of connections and of
// whoever listens on any port.
const (
	ownPort    = 18080
	firstShare = 20000 // from here on every process has a share
	shareSize  = 16
	shares     = 700
)

var addresses, ports atomic.Int64

// ReservedAddress is one that nobody else uses while its owner is away from it: on a
// loopback address of its own where the system has more than the usual one.
func ReservedAddress() string {
	for range 100 {
		n, pid := int(addresses.Add(1)), os.Getpid() // 62,500 processes have some of their own
		address := fmt.Sprintf("127.%d.%d.%d:%d", 1+pid/250%250, 1+pid%250, 1+n%250, ownPort+n/250)
		if isFree(address) {
			return address
		}
	}
	return net.JoinHostPort("127.0.0.1", ReservedPort())
}

// ReservedPort is a port for a program that cannot be told an address.
func ReservedPort() string {
	first := firstShare + os.Getpid()%shares*shareSize
	for range shareSize {
		port := strconv.Itoa(first + int(ports.Add(1))%shareSize)
		if isFree(":" + port) {
			return port
		}
	}
	panic(fmt.Sprintf("inettest: ports %d to %d are all in use", first, first+shareSize-1))
}

func isFree(address string) bool {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
