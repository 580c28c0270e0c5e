package zmtp

import (
	"context"
	"testing"
)

// payload is like a small request: a few short frames and 200 bytes.
func payload() Message { return Message{[]byte("HOOT01"), make([]byte, 200)} }

// open returns a DEALER connected to an echoing ROUTER, ours or that of libzmq.
func open(b *testing.B, peer string) *Socket {
	b.Helper()
	addr := ""
	if peer == "libzmq" {
		addr = start(b, "router", "tcp://127.0.0.1:*").addr
	} else {
		router, err := Listen(b.Context(), Router, anyPort, Options{})
		if err != nil {
			b.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				m, err := router.Recv(context.Background())
				if err != nil {
					return
				}
				_ = router.Send(context.Background(), m)
			}
		}()
		b.Cleanup(func() { router.Close(); <-done })
		addr = router.Addr()
	}
	dealer, err := Dial(b.Context(), Dealer, addr, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(dealer.Close)
	if err := dealer.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	return dealer
}

// BenchmarkRoundTrip sends a message and waits for its echo, one after the other.
func BenchmarkRoundTrip(b *testing.B) {
	for _, peer := range []string{"ours", "libzmq"} {
		b.Run(peer, func(b *testing.B) {
			dealer := open(b, peer)
			b.ReportAllocs()
			for b.Loop() {
				if err := dealer.Send(b.Context(), payload()); err != nil {
					b.Fatal(err)
				}
				if _, err := dealer.Recv(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "roundtrips/s")
		})
	}
}

// BenchmarkPipelined has up to a thousand messages in flight.
func BenchmarkPipelined(b *testing.B) {
	for _, peer := range []string{"ours", "libzmq"} {
		b.Run(peer, func(b *testing.B) {
			dealer := open(b, peer)
			window := make(chan struct{}, 1000)
			b.ReportAllocs()
			b.ResetTimer()
			go func() {
				for range b.N {
					window <- struct{}{}
					_ = dealer.Send(b.Context(), payload())
				}
			}()
			for range b.N {
				if _, err := dealer.Recv(b.Context()); err != nil {
					b.Fatal(err)
				}
				<-window
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "roundtrips/s")
		})
	}
}
