package egress

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
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

// minMasked is the length from which on a value is looked for in responses: shorter ones
// are parts of ordinary text.
const minMasked = 8

// maskResponse replaces secrets in a response by their placeholders. What a destination
// compresses without being asked, encodes, or sends after a change of the protocol is
// not found.
func maskResponse(response *http.Response) error {
	x := exchangeOf(response.Request.Context())
	if x.counts {
		response.Body = countedBody{response.Body, &x.track.received}
	}
	var masked swaps
	sameSize := true
	for _, s := range x.swaps {
		if len(s.value) >= minMasked {
			masked, sameSize = append(masked, s), sameSize && len(s.value) == len(s.placeholder)
		}
	}
	if len(masked) == 0 {
		return nil
	}
	masked.header(response.Header)
	if response.StatusCode == http.StatusSwitchingProtocols || response.Body == http.NoBody {
		return nil
	}
	if !sameSize {
		response.Header.Del("Content-Length")
		response.ContentLength = -1
	}
	response.Body = &maskedBody{ReadCloser: response.Body, swaps: masked, ended: func() { masked.header(response.Trailer) }}
	return nil
}

func (s swaps) header(header http.Header) {
	for _, values := range header {
		for i := range values {
			for _, one := range s {
				values[i] = string(bytes.ReplaceAll([]byte(values[i]), []byte(one.value), []byte(one.placeholder)))
			}
		}
	}
}

// maskedBody replaces values in a stream. It holds back only what may be the beginning of
// a value, so that events pass at once.
type maskedBody struct {
	io.ReadCloser
	swaps swaps
	ended func() // at the end of the body

	ready  []byte // masked
	held   []byte // may be the beginning of a value
	buffer [8 << 10]byte
	err    error
}

func (b *maskedBody) Read(into []byte) (int, error) {
	for len(b.ready) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		n, err := b.ReadCloser.Read(b.buffer[:])
		b.err = err
		b.ready, b.held = b.swaps.mask(append(b.held, b.buffer[:n]...), err != nil)
		if err != nil {
			b.ended()
		}
	}
	n := copy(into, b.ready)
	b.ready = b.ready[n:]
	return n, nil
}

// mask replaces the values in data. Unless it is the last, the end of it that may be the
// beginning of a value is held back.
func (s swaps) mask(data []byte, last bool) (masked, held []byte) {
	for len(data) > 0 {
		at, one := s.first(data)
		if at < 0 {
			break
		}
		masked = append(append(masked, data[:at]...), one.placeholder...)
		data = data[at+len(one.value):]
	}
	keep := 0
	if !last {
		for _, one := range s {
			keep = max(keep, overlap(data, one.value))
		}
	}
	return append(masked, data[:len(data)-keep]...), append([]byte(nil), data[len(data)-keep:]...)
}

// first finds the first value in data, of several at one place the longest.
func (s swaps) first(data []byte) (at int, found swap) {
	at = -1
	for _, one := range s {
		i := bytes.Index(data, []byte(one.value))
		if i >= 0 && (at < 0 || i < at || i == at && len(one.value) > len(found.value)) {
			at, found = i, one
		}
	}
	return at, found
}

// overlap is how many bytes at the end of data are the beginning of value.
func overlap(data []byte, value string) int {
	for n := min(len(data), len(value)-1); n > 0; n-- {
		if string(data[len(data)-n:]) == value[:n] {
			return n
		}
	}
	return 0
}

// countedBody counts what is read.
type countedBody struct {
	io.ReadCloser
	count *atomic.Int64
}

func (b countedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.count.Add(int64(n))
	return n, err
}

// Secret is a value that the program uses without having it.
type Secret struct {
	Name     string
	Variable string // of the program's environment, which gets a placeholder
	Value    secret.Text
	Hosts    []string // that get the value; host or host:port, without a port 443
}

// heldSecret is a secret with the placeholder of one program.
type heldSecret struct {
	name, variable string
	value          secret.Text
	placeholder    string
	hosts          []destination
}

func (s heldSecret) isFor(to destination) bool { return slices.Contains(s.hosts, to) }

// holdSecrets makes placeholders. Variables of the same secret share one.
func holdSecrets(secrets []Secret) ([]heldSecret, error) {
	placeholders := map[string]string{}
	held := make([]heldSecret, 0, len(secrets))
	for _, s := range secrets {
		hosts, err := parseHosts(s)
		if err != nil {
			return nil, err
		}
		if strings.ContainsFunc(s.Value.Reveal(), func(r rune) bool { return r < ' ' || r == 0x7f }) || s.Value.IsZero() {
			return nil, fault.New(fault.Config, "secret %s is empty or has control characters", s.Name).WithHint("only a value of one line can be sent in a header")
		}
		if placeholders[s.Name] == "" {
			placeholders[s.Name] = newPlaceholder(s.Value)
		}
		held = append(held, heldSecret{s.Name, s.Variable, s.Value, placeholders[s.Name], hosts})
	}
	return held, nil
}

// parseHosts reads the hosts of a secret. Each is one host: a * would hand the secret to
// whoever gets a name there.
func parseHosts(s Secret) ([]destination, error) {
	list := make([]destination, 0, len(s.Hosts))
	for _, text := range s.Hosts {
		d, err := urlDestination(text, "443")
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "hosts of secret %s", s.Name).WithHint(`name each host, such as "api.github.com" or "git.example.org:8443"`)
		}
		list = append(list, d)
	}
	return list, nil
}

// CheckHosts reports what is wrong with the hosts of a secret.
func CheckHosts(name string, hosts []string) error {
	_, err := parseHosts(Secret{Name: name, Hosts: hosts})
	return err
}

func secretHosts(secrets []heldSecret) (names []string) {
	for _, s := range secrets {
		for _, d := range s.hosts {
			names = append(names, d.host)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// publicPrefixes begin the tokens of well-known services. Programs check them, and they
// tell nothing but the service.
var publicPrefixes = []string{
	"github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "xoxb-", "xoxp-", "xapp-", "sk-ant-", "sk-proj-", "sk-or-", "sk_live_", "sk_test_", "sk-",
	"ntn_", "secret_", "lin_api_", "npm_", "pypi-", "hf_", "figd_", "dop_v1_", "SG.", "AIza", "pat-", "key-", "tvly-", "BSA", "fc-", "r8_", "shpat_", "sbp_",
}

// minRandom is how long the random part of a placeholder is at least: nothing else looks
// like it.
const minRandom = 20

// newPlaceholder returns a text that stands for a value: with the same beginning, if that
// is public, and if possible with the same length.
func newPlaceholder(value secret.Text) string {
	text, prefix := value.Reveal(), ""
	for _, known := range publicPrefixes {
		if strings.HasPrefix(text, known) && len(text)-len(known) >= minRandom {
			prefix = known
			break
		}
	}
	random := rand.Text()
	for len(prefix)+len(random) < len(text) {
		random += rand.Text()
	}
	return prefix + random[:max(minRandom, len(text)-len(prefix))]
}

// swap is what the program has and what the destination gets in its place.
type swap struct{ placeholder, value string }

// swaps are those of one request.
type swaps []swap

// swapSecrets puts values into the headers of a request, if they are for its destination,
// and notes which.
func (g *Gateway) swapSecrets(x *exchange, header http.Header) (done swaps) {
	if x.url.Scheme != "https" {
		return nil
	}
	header.Del("Accept-Encoding") // so that maskResponse can read the response
	var names []string
	for _, s := range g.secrets {
		if !s.isFor(x.to) {
			continue
		}
		one := swap{s.placeholder, s.value.Reveal()}
		done = append(done, one.forms()...)
		if used, sent := one.into(header); used {
			names, done = append(names, s.name), append(done, sent...)
		}
	}
	if len(names) > 0 {
		g.service.history.change(x.track, func(c *Connection) {
			c.Secrets = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(c.Secrets), names...))))
		})
	}
	return done
}

// forms are the ways in which a response may show the value.
func (s swap) forms() swaps {
	forms := swaps{s}
	quoted, _ := json.Marshal(s.value) // a string
	for _, other := range []string{strings.Trim(string(quoted), `"`), url.QueryEscape(s.value), url.PathEscape(s.value)} {
		if !slices.ContainsFunc(forms, func(f swap) bool { return f.value == other }) {
			forms = append(forms, swap{s.placeholder, other})
		}
	}
	return forms
}

// into replaces the placeholder in all values of a header, also inside the user and
// password of Basic. It returns what else the response may repeat.
func (s swap) into(header http.Header) (used bool, sent swaps) {
	for _, values := range header {
		for i, value := range values {
			if strings.Contains(value, s.placeholder) {
				values[i], used = strings.ReplaceAll(value, s.placeholder, s.value), true
			} else if changed, ok := s.intoBasic(value); ok {
				sent = append(sent, swap{value[len(basic):], changed[len(basic):]})
				values[i], used = changed, true
			}
		}
	}
	return used, sent
}

const basic = "Basic "

// intoBasic replaces the placeholder inside the value of a header for Basic.
func (s swap) intoBasic(value string) (string, bool) {
	if len(value) < len(basic) || !strings.EqualFold(value[:len(basic)], basic) {
		return "", false
	}
	pair, err := base64.StdEncoding.DecodeString(value[len(basic):])
	if err != nil || !strings.Contains(string(pair), s.placeholder) {
		return "", false
	}
	return value[:len(basic)] + base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(string(pair), s.placeholder, s.value))), true
}
