package peer

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// patience is how long the programs that tell about processes may take.
const patience = 5 * time.Second

// ofUnix knows nothing: the mode of the socket and of its folder decide who can connect.
func ofUnix(*net.UnixConn) (socket, error) { return socket{}, ErrUnsupported }

// ofTCP asks lsof, which is part of the system and knows the sockets of this user; those of
// other users it does not show.
func ofTCP(theirs, _ netip.AddrPort) (socket, error) {
	out, err := output("lsof", "-nP", "-a", "-iTCP@"+theirs.Addr().String()+":"+strconv.Itoa(int(theirs.Port())), "-sTCP:ESTABLISHED", "-FpuPn")
	if err != nil {
		return socket{}, err
	}
	s := socket{uid: -1}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "p"):
			s.pid, _ = strconv.Atoi(line[1:])
		case strings.HasPrefix(line, "u"):
			s.uid, _ = strconv.Atoi(line[1:])
		case strings.HasPrefix(line, "n"+theirs.String()+"->"): // theirs is the local end
			return s, nil
		}
	}
	return socket{uid: -1}, nil
}

func parentOf(pid int) (int, error) {
	out, err := output("ps", "-o", "ppid=", "-p", strconv.Itoa(pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

func output(name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil && len(out) == 0 {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnsupported, name, err)
	}
	return out, nil
}

func (f *Finder) holder(uint32) (int, error) { return 0, ErrUnsupported }
