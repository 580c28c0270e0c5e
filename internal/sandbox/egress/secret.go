package egress

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

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
