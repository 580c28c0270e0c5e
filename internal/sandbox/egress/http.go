package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// serveProxy serves a request to the proxy itself.
func (g *Gateway) serveProxy(w http.ResponseWriter, r *http.Request) {
	switch {
	case !g.knows(r):
		w.Header().Set("Proxy-Authenticate", `Basic realm="luanette"`)
		http.Error(w, "luanette: the proxy is for one program, with the password in its HTTPS_PROXY", http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		g.serveConnect(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		g.serveForward(w, r, HTTP)
	default:
		http.Error(w, "luanette: this is a proxy: use CONNECT, or a URL with http://", http.StatusBadRequest)
	}
}

// knows reports whether a request is from the program.
func (g *Gateway) knows(r *http.Request) bool {
	if !g.shared {
		return true
	}
	stand := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	_, password, _ := stand.BasicAuth()
	return subtle.ConstantTimeCompare([]byte(password), []byte(g.password)) == 1
}

// serveTunnel opens a tunnel if what came first is a whole CONNECT, as it nearly always
// is. An HTTP server would take as long as the rest of the connection. It reports whether
// it did; otherwise nothing is read.
func (g *Gateway) serveTunnel(client *clientConn) bool {
	head, rest, complete := bytes.Cut(client.first, []byte("\r\n\r\n"))
	if !complete || !bytes.HasPrefix(head, []byte("CONNECT ")) {
		return false
	}
	r, err := http.ReadRequest(bufio.NewReaderSize(bytes.NewReader(client.first), len(client.first)))
	if err != nil || !g.knows(r) {
		return false
	}
	to, err := connectDestination(r)
	if err != nil {
		return false
	}
	client.first = rest
	g.tunnel(client, to)
	return true
}

// connectDestination is where a CONNECT leads to.
func connectDestination(r *http.Request) (to destination, err error) {
	if to, err = parseDestination(r.RequestURI); err == nil && (r.ContentLength != 0 || len(r.TransferEncoding) > 0) {
		err = errors.New("CONNECT with a body")
	}
	return to, err
}

// serveConnect opens a tunnel on a connection on which there were other requests.
func (g *Gateway) serveConnect(w http.ResponseWriter, r *http.Request) {
	to, err := connectDestination(r)
	if err != nil {
		http.Error(w, "luanette: "+err.Error(), http.StatusBadRequest)
		return
	}
	client, err := hijack(w)
	if err != nil {
		http.Error(w, "luanette: this connection cannot become a tunnel", http.StatusHTTPVersionNotSupported)
		return
	}
	g.tunnel(client, to) //nolint:contextcheck // the tunnel outlives the request
}

// tunnel connects the program to a destination, and answers its CONNECT.
func (g *Gateway) tunnel(client *clientConn, to destination) {
	g.carry(client, to, Tunnel, func(failed error) error {
		if failed == nil {
			_, err := client.Conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n"))
			return err
		}
		return g.writeRefusal(client, failed)
	})
}

// hijack takes the connection of a request, with what was read of it already.
func hijack(w http.ResponseWriter) (*clientConn, error) {
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	client, ours := conn.(*clientConn)
	if !ours {
		_ = conn.Close()
		return nil, errors.New("not a connection of the program")
	}
	client.takeBuffered(buffer.Reader)
	return client, client.SetDeadline(time.Time{})
}

// takeBuffered puts back what a reader has read ahead.
func (c *clientConn) takeBuffered(from *bufio.Reader) {
	ahead, _ := from.Peek(from.Buffered())
	c.first = append(append([]byte(nil), ahead...), c.first...)
}

// writeRefusal answers CONNECT. Many clients show the status line only, so that it has
// the whole reason.
func (g *Gateway) writeRefusal(client *clientConn, failed error) error {
	text := oneLine(g.explain(failed))
	_, err := fmt.Fprintf(client.Conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		statusOf(failed), text, len(text)+1, text)
	return err
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func statusOf(err error) int {
	if asRefused(err) != nil {
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

// serveForward sends a request of plain HTTP on. Each request is recorded, since requests
// of one connection may have different destinations.
func (g *Gateway) serveForward(w http.ResponseWriter, r *http.Request, protocol string) {
	to, err := urlDestination(r.URL.Host, "80")
	if err != nil {
		http.Error(w, "luanette: "+err.Error(), http.StatusBadRequest)
		return
	}
	t := g.begin(to, protocol)
	defer g.service.end(t)
	if err := g.allow(t, to); err != nil {
		g.service.fail(t, err)
		http.Error(w, g.explain(err), statusOf(err))
		return
	}
	target := &url.URL{Scheme: "http", Host: to.String(), Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}
	g.send(w, r, &exchange{gateway: g, to: to, url: target, track: t, counts: true})
}

// urlDestination is the destination of the host of a URL.
func urlDestination(host, defaultPort string) (destination, error) {
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
	}
	return parseDestination(host)
}

// exchange is one request that is sent on, with its response.
type exchange struct {
	gateway *Gateway
	to      destination
	url     *url.URL
	track   *track
	counts  bool // its bytes are those of the track
	swaps   swaps
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// send sends a request on and copies the response.
func (g *Gateway) send(w http.ResponseWriter, r *http.Request, x *exchange) {
	ctx := context.WithValue(r.Context(), exchangeKey{}, x)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		g.service.history.change(x.track, func(c *Connection) { c.Address = info.Conn.RemoteAddr().String() })
	}})
	x.track.requests.Add(1)
	if x.counts && r.Body != nil {
		r.Body = countedBody{r.Body, &x.track.sent}
	}
	g.forward.ServeHTTP(finalOnly{w}, r.WithContext(ctx))
}

// finalOnly drops informational responses: their headers do not pass maskResponse.
type finalOnly struct{ http.ResponseWriter }

func (w finalOnly) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap lets http.ResponseController find what else the writer can do.
func (w finalOnly) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// rewrite makes the request that is sent.
func rewrite(r *httputil.ProxyRequest) {
	x := exchangeOf(r.In.Context())
	r.Out.URL, r.Out.Host = x.url, r.In.Host
	r.Out.Header.Del("Proxy-Authorization")
	x.swaps = x.gateway.swapSecrets(x, r.Out.Header)
}

// answerError answers a request that could not be sent.
func (g *Gateway) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil { // the program still waits
		g.service.fail(exchangeOf(r.Context()).track, err)
	}
	http.Error(w, g.explain(err), statusOf(err))
}

// newTransport connects by dial only. Without an Accept-Encoding of the program it
// decompresses responses, so that secrets in them are found.
func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error), roots *x509.CertPool) *http.Transport {
	config := tlsDefaults()
	config.RootCAs, config.NextProtos = roots, nil
	return &http.Transport{
		DialContext: dial, TLSClientConfig: config, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 8, IdleConnTimeout: keptOpen, TLSHandshakeTimeout: dialTimeout, MaxResponseHeaderBytes: 1 << 20,
	}
}

func tlsDefaults() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
}

// dialTransport connects to the host of a request.
func (g *Gateway) dialTransport(ctx context.Context, _, address string) (net.Conn, error) {
	to, err := parseDestination(address)
	if err != nil {
		return nil, err
	}
	return g.dialer.connect(ctx, to)
}
