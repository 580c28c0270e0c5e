package egress_test

import (
	"io"
	"math"
	"net"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/sandbox/egress"
)

// cpu is the processor time of this process, in nanoseconds.
func cpu() int64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return used.Utime.Nano() + used.Stime.Nano()
}

const turn = 100

// BenchmarkConnection compares one connection with 64 bytes there and back through the
// proxy with a direct one. Client, proxy and server are in this process.
func BenchmarkConnection(b *testing.B) {
	n := newInternet(b, egress.Options{})
	server := echo(b)
	n.host("db.example", public, 5432, server)
	p := n.start(false, nil, "db.example:5432")
	message, answer := make([]byte, 64), make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	exchange := func(address, before string) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		if before != "" {
			_, _ = io.WriteString(conn, before)
			if _, err := io.ReadFull(conn, answer); err != nil {
				b.Fatal(err)
			}
		}
		_, _ = conn.Write(message)
		if _, err := io.ReadFull(conn, message); err != nil {
			b.Fatal(err)
		}
	}
	spent := func(n int, address, before string) float64 {
		began := cpu()
		for range n {
			exchange(address, before)
		}
		return float64(cpu()-began) / float64(n) / 1000
	}
	// In turns, and the best turn of each: other programs disturb them all.
	direct, forwarded, proxied := math.Inf(1), math.Inf(1), math.Inf(1)
	forwarding := forwarder(b, server)
	for done := 0; done < b.N; done += turn {
		n := min(turn, b.N-done)
		direct = min(direct, spent(n, server, ""))
		forwarded = min(forwarded, spent(n, forwarding, ""))
		proxied = min(proxied, spent(n, p.address, "CONNECT db.example:5432 HTTP/1.1\r\nHost: db.example:5432\r\n\r\n"))
	}
	b.ReportMetric(direct, "direct-cpu-µs")
	b.ReportMetric(proxied, "proxied-cpu-µs")
	b.ReportMetric(forwarded, "bare-forwarder-cpu-µs")
	b.ReportMetric(proxied-direct, "added-cpu-µs")
	b.ReportMetric(proxied/direct, "ratio")
}

// forwarder is the least that a proxy can do: it copies between two connections.
func forwarder(b *testing.B, to string) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer near.Close()
				far, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer far.Close()
				go func() {
					_, _ = io.Copy(far, near)
					_ = far.(*net.TCPConn).CloseWrite()
				}()
				_, _ = io.Copy(near, far)
			}()
		}
	}()
	return listener.Addr().String()
}
