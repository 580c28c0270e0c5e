package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// backendKeygenCommand is `luanette backend keygen`.
type backendKeygenCommand struct {
	File string `arg:"" optional:"" help:"File for the secret key, readable only by its owner; without one it is printed."`
	JSON bool   `help:"Print JSON."`
}

// Help is shown by `luanette backend keygen --help`.
func (backendKeygenCommand) Help() string {
	return `Makes keys for CURVE, the security of ZeroMQ itself, so that a backend and its front
end can run on different machines (docs/backends.md). Each end has a pair: the secret
key stays there, the public key is given to the other end.

  luanette backend keygen curve.key

prints the public key. On the side of the tools (luanette serve with bridge.listen,
luanette hoot):

  [bridge]
  curve_secret = "${file:curve.key}"
  curve_clients = ["PUBLIC KEY OF THE FRONT END"]

On the side of the front end:

  [upstreams.music]
  url = "zmq+tcp://10.0.0.7:5580"
  curve = { server = "PUBLIC KEY OF THE BACKEND", secret = "${file:curve.key}" }`
}

// Run makes the keys.
func (c *backendKeygenCommand) Run(_ context.Context, proc *process) error {
	secret := newBackendKey()
	keys := map[string]string{"public": secret.Public().Text()}
	if c.File == "" {
		keys["secret"] = secret.Text()
	} else if err := writeNewFile(c.File, secret.Text()+"\n"); err != nil {
		return err
	}
	if c.JSON {
		return writeLine(proc.Stdout, keys)
	}
	if c.File == "" {
		_, err := fmt.Fprintf(proc.Stdout, "public key: %s\nsecret key: %s\n", keys["public"], keys["secret"])
		return err
	}
	_, err := fmt.Fprintln(proc.Stdout, keys["public"])
	return err
}

// newBackendKey returns a secret key whose public key can follow --curve: one that begins
// with a dash would be read as another option.
func newBackendKey() zmtp.Key {
	for {
		secret := zmtp.NewSecretKey()
		if !strings.HasPrefix(secret.Public().Text(), "-") {
			return secret
		}
	}
}

// writeNewFile writes a file that only its owner may read. It replaces none.
func writeNewFile(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault.Wrap(fault.Conflict, err, "write secret key").WithHint("choose another file; an existing one is not replaced")
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
