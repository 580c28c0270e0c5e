// Command greeter is a backend for Luanette: tools in Go, over ZeroMQ. Copy this folder,
// replace the replace line in go.mod by a version, and write your own tools.
//
//	go run . &
//	luanette upstream add greeter zmq+tcp://127.0.0.1:5580
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/luanette/luanette/backend"
)

// Person is whom to greet.
type Person struct {
	Name string `json:"name" jsonschema:"whom to greet"`
}

// Quotient is the result of divide.
type Quotient struct {
	Quotient float64 `json:"quotient"`
}

func greet(_ context.Context, in Person) (string, error) { return "Hello, " + in.Name + "!", nil }

func divide(_ context.Context, in struct {
	A float64 `json:"a" jsonschema:"the dividend"`
	B float64 `json:"b" jsonschema:"the divisor"`
}) (Quotient, error) {
	if in.B == 0 {
		return Quotient{}, &backend.Error{Code: "invalid_params", Message: "b is zero", Hint: "choose another divisor"}
	}
	return Quotient{in.A / in.B}, nil
}

// count shows progress. It ends early when the caller gives up.
func count(ctx context.Context, in struct {
	To int `json:"to" jsonschema:"how far to count" min:"1" max:"100"`
}) (backend.Result, error) {
	var lines []string
	for n := 1; n <= in.To; n++ {
		select {
		case <-ctx.Done():
			return backend.Result{}, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		lines = append(lines, strings.Repeat("|", n))
		backend.Progress(ctx, float64(n), float64(in.To), "counting")
	}
	return backend.Result{Text: "done", Attachments: []backend.Attachment{
		{Name: "count.txt", MimeType: "text/plain", Text: strings.Join(lines, "\n")},
	}}, nil
}

func main() {
	listen := flag.String("listen", "tcp://127.0.0.1:5580", "where Luanette connects to")
	flag.Parse()
	b := backend.New("greeter", backend.Options{Listen: *listen, SecretKey: os.Getenv("GREETER_SECRET")})
	backend.Add(b, backend.Tool{Name: "greet", Description: "Greet a person", ReadOnly: true}, greet)
	backend.Add(b, backend.Tool{Name: "divide", Description: "Divide a by b", ReadOnly: true}, divide)
	backend.Add(b, backend.Tool{Name: "count", Description: "Count slowly, with progress", ReadOnly: true}, count)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.Listen(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", b.Addr())
	if err := b.Serve(ctx); err != nil {
		log.Fatal(err)
	}
}
