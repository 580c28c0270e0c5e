//go:build linux

package peer_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/peer"
)

// TestMain lets the test binary be the program that connects: as itself, or as the child of
// one that has ended its own part.
func TestMain(m *testing.M) {
	if address := os.Getenv("PEER_TEST_CONNECT"); address != "" {
		if os.Getenv("PEER_TEST_CHILD") != "" {
			cmd := exec.Command(os.Args[0])
			cmd.Env = []string{"PEER_TEST_CONNECT=" + address}
			cmd.Stdin = os.Stdin
			_ = cmd.Run()
			return
		}
		network, at, _ := strings.Cut(address, " ")
		conn, err := net.Dial(network, at)
		if err == nil {
			defer conn.Close()
		}
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the test is done
		return
	}
	os.Exit(m.Run())
}

func TestWhoIsThere(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string][2]string{
		"TCP":               {"tcp", "127.0.0.1:0"},
		"TCP over IPv6":     {"tcp", "[::1]:0"},
		"all addresses":     {"tcp", ":0"},
		"a socket's folder": {"unix", t.TempDir() + "/s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen(listen[0], listen[1])
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			address := listener.Addr().String()
			if name == "all addresses" {
				_, port, _ := net.SplitHostPort(address)
				address = "127.0.0.1:" + port
			}
			t.Run("this process", func(t *testing.T) {
				other, err := net.Dial(listen[0], address)
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				if got := accepted(t, listener, 1<<22); got != (peer.Peer{UID: os.Getuid()}) {
					t.Errorf("%+v, want this user and no program", got)
				}
			})
			for _, child := range []string{"", "yes"} {
				t.Run("a program"+map[string]string{"yes": " of a program"}[child], func(t *testing.T) {
					program := exec.Command(os.Args[0])
					program.Env = []string{"PEER_TEST_CONNECT=" + listen[0] + " " + address, "PEER_TEST_CHILD=" + child}
					in, err := program.StdinPipe()
					if err != nil {
						t.Fatal(err)
					}
					if err := program.Start(); err != nil {
						t.Fatal(err)
					}
					if got := accepted(t, listener, 1<<22, program.Process.Pid); got.Program != program.Process.Pid {
						t.Errorf("started by %d, want %d", got.Program, program.Process.Pid)
					}
					_ = in.Close()
					_ = program.Wait()
				})
			}
		})
	}
}

func accepted(t *testing.T, listener net.Listener, programs ...int) peer.Peer {
	t.Helper()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if !peer.IsLocal(conn) {
		t.Errorf("%s is not local", conn.RemoteAddr())
	}
	var finder peer.Finder
	got, err := finder.Find(conn, os.Getuid(), programs)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestEnded checks that a peer that has closed its end is unknown: the kernel then shows it
// as root's.
func TestEnded(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	other, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = other.Close()
	_, _ = conn.Read(make([]byte, 1)) // until the end has arrived
	var finder peer.Finder
	if got, err := finder.Find(conn, os.Getuid(), nil); !errors.Is(err, peer.ErrUnknown) {
		t.Errorf("%+v, %v; want ErrUnknown", got, err)
	}
}

func BenchmarkFind(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	other, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer other.Close()
	conn, err := listener.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if _, err := new(peer.Finder).Find(conn, os.Getuid(), []int{1 << 22}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		var finder peer.Finder
		for b.Loop() {
			if _, err := finder.Find(conn, os.Getuid(), []int{1 << 22}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
