package hootclient_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// publish opens a PUB; subscribed receives a value for each subscription.
func publish(t *testing.T) (socket *zmtp.Socket, subscribed chan struct{}) {
	t.Helper()
	subscribed = make(chan struct{}, 8)
	socket, err := zmtp.Listen(t.Context(), zmtp.Pub, "tcp://127.0.0.1:0", zmtp.Options{OnEvent: func(e zmtp.Event) {
		if e.Type == zmtp.Subscribed {
			subscribed <- struct{}{}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(socket.Close)
	return socket, subscribed
}

// Broadcasts come from the backend's own host, whatever host it announces, until another
// endpoint replaces it.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	b := listen(t)
	invalid := make(chan error, 1)
	c := b.dial(hootclient.Options{OnInvalid: func(err error) { invalid <- err }})
	received := make(chan string, 1)
	for _, reason := range []string{"first", "second"} {
		socket, subscribed := publish(t)
		_, port, _ := strings.Cut(strings.TrimPrefix(socket.Addr(), "tcp://"), ":")
		err := c.Subscribe(t.Context(), "tcp://192.0.2.1:"+port, func(o hootproto.RawBroadcast) {
			known, err := o.Decode()
			if err != nil {
				t.Error(err)
			}
			end, _ := known.(hootproto.Shutdown)
			received <- end.Reason
		})
		if err != nil {
			t.Fatal(err)
		}
		<-subscribed
		frame, err := hootproto.EncodeBroadcast(hootproto.JSON, hootproto.Shutdown{Reason: reason})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []zmtp.Message{{[]byte("nonsense")}, {frame}} {
			if err := socket.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-invalid; err == nil {
			t.Error("nonsense is valid")
		}
		if got := <-received; got != reason {
			t.Errorf("received %q, want %q", got, reason)
		}
	}
}

func TestSubscribeRefusesEndpoints(t *testing.T) {
	t.Parallel()
	c := listen(t).dial(hootclient.Options{})
	for _, endpoint := range []string{"", "ipc:///tmp/x", "tcp://127.0.0.1", "http://127.0.0.1:1"} {
		if err := c.Subscribe(t.Context(), endpoint, nil); fault.CodeOf(err) != fault.Upstream {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
