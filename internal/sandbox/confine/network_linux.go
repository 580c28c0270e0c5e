package confine

import (
	"fmt"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// namesPort is the port of DNS.
const namesPort = 53

// ownGateway reports whether the gateway is the only thing in a network of the program's
// own. Then all addresses lead to it.
func (p *Policy) ownGateway() bool { return p.Namespaces && p.Network == GatewayNetwork }

// reaches reports whether the program may connect to a port. What the gateway thinks of
// the connection is its own matter.
func (p *Policy) reaches(port int, loopback bool) bool {
	switch {
	case p.Network == HostNetwork:
		return true
	case p.Network == NoNetwork:
		return false
	case loopback && (port == p.Port || p.Namespaces && port == namesPort):
		return true
	}
	return p.Namespaces && slices.Contains(p.Direct, port)
}

// fillNetwork prepares the new network: its loopback interface, and the sockets of the
// gateway. They are given away: a socket belongs to the network it was made in, whoever
// has it.
func (p *Policy) fillNetwork() error {
	if err := loopbackUp(); err != nil {
		return err
	}
	if p.Network != GatewayNetwork {
		return nil
	}
	if err := giveListener(Listener, unix.SockaddrInet4{Port: p.Port, Addr: loopbackAddress}); err != nil {
		return err
	}
	if err := leadToLoopback(); err != nil {
		return err
	}
	for _, port := range p.Direct {
		if err := giveListener(Direct, unix.SockaddrInet4{Port: port}); err != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
	}
	return giveNames()
}

var (
	loopbackAddress = [4]byte{127, 0, 0, 1}
	// ownAddress is one that is not of the loopback network: without any, resolvers
	// believe that there is no IPv4.
	ownAddress = [4]byte{198, 18, 0, 1}
)

// loopbackUp starts the loopback interface of a new network namespace.
func loopbackUp() error {
	return configure("lo", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		return nil
	})
}

func configure(device string, request uint, fill func(*unix.Ifreq) error) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	r, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	if err := fill(r); err != nil {
		return err
	}
	return unix.IoctlIfreq(s, request, r)
}

// leadToLoopback makes all addresses our own, as `ip route add local 0.0.0.0/0 dev lo`
// does: a listener at a port then has the connections to every host at that port.
func leadToLoopback() error {
	err := configure("lo:1", unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(ownAddress[:]) })
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	const loopback = 1 // the index of its interface in every network
	request := struct {
		header unix.NlMsghdr
		route  unix.RtMsg
		device unix.RtAttr
		index  uint32
	}{
		header: unix.NlMsghdr{Type: unix.RTM_NEWROUTE, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE},
		route:  unix.RtMsg{Family: unix.AF_INET, Table: unix.RT_TABLE_LOCAL, Protocol: unix.RTPROT_STATIC, Scope: unix.RT_SCOPE_HOST, Type: unix.RTN_LOCAL},
		device: unix.RtAttr{Len: unix.SizeofRtAttr + 4, Type: unix.RTA_OIF},
		index:  loopback,
	}
	request.header.Len = uint32(unsafe.Sizeof(request))
	if err := askNetlink(unsafe.Slice((*byte)(unsafe.Pointer(&request)), unsafe.Sizeof(request))); err != nil {
		return fmt.Errorf("route: %w", err)
	}
	return nil
}

// askNetlink sends a request about the network and returns the kernel's answer.
func askNetlink(request []byte) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	if err := unix.Sendto(s, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	var reply struct {
		header unix.NlMsghdr
		err    int32
		rest   [1024]byte // the request
	}
	n, err := unix.Read(s, unsafe.Slice((*byte)(unsafe.Pointer(&reply)), unsafe.Sizeof(reply)))
	switch {
	case err != nil:
		return err
	case n < unix.SizeofNlMsghdr+4 || reply.header.Type != unix.NLMSG_ERROR:
		return unix.EPROTO
	case reply.err != 0:
		return unix.Errno(-reply.err)
	}
	return nil
}

// giveListener listens at an address and gives the listener away.
func giveListener(kind string, at unix.SockaddrInet4) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	if err := unix.Bind(s, &at); err != nil {
		return err
	}
	if err := unix.Listen(s, 128); err != nil {
		return err
	}
	return send(ControlFile, Message{Kind: kind}, s)
}

// giveNames gives away the socket of the name server that resolv.conf has.
func giveNames() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	if err := unix.Bind(s, &unix.SockaddrInet4{Port: namesPort, Addr: loopbackAddress}); err != nil {
		return fmt.Errorf("names: %w", err)
	}
	return send(ControlFile, Message{Kind: Names}, s)
}

// nameFiles are the files that a program in a network of its own has in place of the
// computer's: all names but its own are asked from the gateway.
func (p *Policy) nameFiles() map[string]string {
	if !p.ownGateway() {
		return nil
	}
	return map[string]string{
		"/etc/resolv.conf": "nameserver 127.0.0.1\n",
		"/etc/hosts":       "127.0.0.1 localhost sandbox\n",
	}
}

// attachNameFiles puts the files at their places in the new root.
func (p *Policy) attachNameFiles() error {
	for path, content := range p.nameFiles() {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			real = path
		}
		if makePlace(newRoot+real, false) != nil {
			continue // in a folder that has no such file and is only read: programs ask the gateway only if they know it
		}
		if err := attachFile(newRoot+real, content, 0o444); err != nil {
			return step("file "+path, err)
		}
	}
	return nil
}
