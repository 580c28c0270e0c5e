package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// intercepts reports whether connections to a destination are read here, because a secret
// is for it.
func (g *Gateway) intercepts(to destination) bool {
	return slices.ContainsFunc(g.secrets, func(s heldSecret) bool { return s.isFor(to) })
}

// intercept speaks TLS with the program in place of the destination, and serves the
// requests inside.
func (g *Gateway) intercept(client *clientConn, to destination, t *track) {
	client.to, client.track = to, t
	config := tlsDefaults()
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if err := sameName(to, hello.ServerName); err != nil {
			return nil, err
		}
		return g.authority.Certificate(to.host, g.service.options.Clock.Now())
	}
	secured := tls.Server(client, config)
	ctx, cancel := context.WithTimeout(g.ctx, g.service.options.HandshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		g.service.fail(t, handshakeError(to, err))
		_ = client.Close()
		return
	}
	g.decrypted.pass(secured)
}

// handshakeError says why a program does not speak TLS with us.
func handshakeError(to destination, err error) error {
	var alert *net.OpError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &alert) && alert.Op == "remote error":
		return fmt.Errorf("the program does not accept the certificate with which the proxy reads requests to %s (%w): the secret cannot be put in; give the secret no hosts to let the program have it", to.host, err)
	case errors.As(err, &record):
		return &refusedError{reason: fmt.Sprintf("connections to %s must use TLS, because a secret is for it", to)}
	}
	return fmt.Errorf("TLS with the program: %w", err)
}

// sameName refuses a name inside TLS other than that of the destination.
func sameName(to destination, name string) error {
	if name == "" {
		return nil // the certificate is for the destination anyway
	}
	if inside, err := newDestination(name, to.port); err != nil || inside != to {
		return &refusedError{reason: fmt.Sprintf("the name %q inside TLS is not %s", shortened(name), to.host)}
	}
	return nil
}

// serveIntercepted serves a request inside TLS.
func (g *Gateway) serveIntercepted(w http.ResponseWriter, r *http.Request) {
	client := connOf(r)
	if inside, err := urlDestination(r.Host, strconv.Itoa(int(client.to.port))); err != nil || inside != client.to {
		refused := &refusedError{reason: fmt.Sprintf("the Host %q inside TLS is not %s", shortened(r.Host), client.to)}
		g.service.fail(client.track, refused)
		http.Error(w, g.explain(refused), http.StatusMisdirectedRequest)
		return
	}
	target := &url.URL{Scheme: "https", Host: client.to.String(), Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}
	g.send(w, r, &exchange{gateway: g, to: client.to, url: target, track: client.track})
}
