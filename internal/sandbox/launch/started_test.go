//go:build linux

package launch

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"testing"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// A program that connects to us as soon as it runs is among those that we started, in a
// sandbox and without.
func TestStartedProgramsAreKnownAtOnce(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash") // it connects by itself
	if err != nil {
		t.Skip("bash is not installed")
	}
	for _, level := range []profile.Level{profile.Off, profile.Open} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			const programs = 50
			l := &Launcher{Folder: t.TempDir()}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			connect := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d; read line <&3", listener.Addr().(*net.TCPAddr).Port)
			ended := make(chan error, programs)
			for range programs {
				c, err := l.Command(profile.Profile{Name: "x", Level: level}, Program{Path: bash, Args: []string{"bash", "-c", connect}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"})
				if err != nil {
					t.Fatal(err)
				}
				go func() { ended <- c.Run() }()
			}
			for connected := 1; connected <= programs; connected++ {
				conn, err := listener.Accept()
				if err != nil {
					t.Fatal(err)
				}
				if known := len(l.Started()); known < connected {
					t.Errorf("%d programs are connected, %d are known", connected, known)
				}
				defer io.WriteString(conn, "\n")
			}
			listener.Close()
			t.Cleanup(func() {
				for range programs {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
