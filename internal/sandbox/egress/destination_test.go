package egress

import (
	"net/netip"
	"strings"
	"testing"
)

func TestDestinations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"api.github.com:443":         "api.github.com:443",
		"API.GitHub.com.:443":        "api.github.com:443",
		"bücher.example:443":         "xn--bcher-kva.example:443",
		"XN--Bcher-KVA.example:443":  "xn--bcher-kva.example:443",
		"ｅｘａｍｐｌｅ.org:80":             "example.org:80",
		"my_host.internal:80":        "my_host.internal:80",
		"127.0.0.1:80":               "127.0.0.1:80",
		"[::1]:80":                   "[::1]:80",
		"[::ffff:127.0.0.1]:80":      "127.0.0.1:80",
		"[0:0:0:0:0:0:0:1]:80":       "[::1]:80",
		"example.org:65535":          "example.org:65535",
		"a.b.c.d.e.f.example.org:01": "a.b.c.d.e.f.example.org:1",
	} {
		d, err := parseDestination(text)
		if err != nil || d.String() != want {
			t.Errorf("%s: %s %v, want %s", text, d, err, want)
		}
	}
	for _, text := range []string{
		"", ":443", "example.org", "example.org:", "example.org:0", "example.org:65536", "example.org:-1", "example.org:+1", "example.org:http",
		"127.1:80", "0x7f.1:80", "0x7f000001:80", "2130706433:80", "0177.0.0.1:80", "1.2.3.4.:80", "1.2.3:80", "999.999.999.999:80", "example.08:80",
		"exa mple.org:80", "user@example.org:80", "example.org/path:80", "example.org%00.evil:80", "a..b:80", ".:80", "..:80",
		"[fe80::1%25eth0]:80", "[fe80::1%eth0]:80", "[example.org]:80:80", "*:80", "*.example.org:80",
		strings.Repeat("a", 64) + ".org:80", strings.Repeat("a.", 130) + "org:80", strings.Repeat("ü", 5000) + ":80", "xn--\xff:80", "a\x00b:80",
	} {
		if d, err := parseDestination(text); err == nil {
			t.Errorf("%q is taken for %s", shortened(text), d)
		} else if len(err.Error()) > 300 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	rules, err := ParseRules([]string{"api.github.com:443", "*.npmjs.org:443", "Bücher.example:443", "localhost:5432", "10.0.0.5:5432", "192.168.0.0/16:80", "[fd00::5]:*", "any.example:*"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"api.github.com:443":                 "api.github.com:443",
		"API.GITHUB.COM.:443":                "api.github.com:443",
		"api.github.com:80":                  "",
		"github.com:443":                     "",
		"evil-api.github.com:443":            "",
		"api.github.com.evil.example:443":    "",
		"npmjs.org:443":                      "",
		"registry.npmjs.org:443":             "*.npmjs.org:443",
		"a.b.npmjs.org:443":                  "*.npmjs.org:443",
		"evilnpmjs.org:443":                  "",
		"xn--bcher-kva.example:443":          "Bücher.example:443",
		"localhost:5432":                     "localhost:5432",
		"127.0.0.1:5432":                     "",
		"10.0.0.5:5432":                      "10.0.0.5:5432",
		"[::ffff:10.0.0.5]:5432":             "10.0.0.5:5432",
		"10.0.0.6:5432":                      "",
		"192.168.7.7:80":                     "192.168.0.0/16:80",
		"[fd00::5]:9":                        "[fd00::5]:*",
		"any.example:1":                      "any.example:*",
		"93.184.216.34:443":                  "",
		"sub.any.example:1":                  "",
		"xn--bcher-kva.example.:443":         "Bücher.example:443",
		"registry.npmjs.org.evil.example:80": "",
	} {
		d, err := parseDestination(text)
		if err != nil {
			t.Fatal(err)
		}
		if entry, allowed := rules.match(d); entry != want || allowed != (want != "") {
			t.Errorf("%s: allowed by %q, want %q", text, entry, want)
		}
	}
	for _, entry := range []string{"", "example.org", "example.org:0", "example.org:x", "*example.org:443", "*.:443", "*.1.2.3.4:443", "*.10.0.0.1:80", "10.0.0.0/33:80", "http://example.org:80", "a b:80", "**:1"} {
		if _, err := ParseRules([]string{entry}); err == nil {
			t.Errorf("the rule %q is accepted", entry)
		}
	}
}

// Every name is not every address, and no name leads to this machine.
func TestWhatAStarAllows(t *testing.T) {
	t.Parallel()
	rules, err := ParseRules([]string{"*:443", "localhost:1"})
	if err != nil {
		t.Fatal(err)
	}
	name, literal, local := destination{host: "x.example", port: 443}, destination{host: "1.1.1.1", address: netip.MustParseAddr("1.1.1.1"), port: 443}, destination{host: "localhost", port: 1}
	if _, allowed := rules.match(name); !allowed {
		t.Error("a name is refused")
	}
	if _, allowed := rules.match(literal); allowed {
		t.Error("an address is allowed")
	}
	for address, want := range map[string]bool{
		"1.1.1.1": true, "2606:4700::1111": true, "127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "10.0.0.1": false, "169.254.169.254": false,
		"fe80::1": false, "fd00:ec2::254": false, "0.0.0.0": false, "100.64.0.1": false, "64:ff9b::7f00:1": false, "198.18.0.1": false, "224.0.0.1": false,
	} {
		if got := rules.permits(name, netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is permitted: %v", address, got)
		}
	}
	if !rules.permits(local, netip.MustParseAddr("127.0.0.1")) || rules.permits(local, netip.MustParseAddr("10.0.0.1")) {
		t.Error("localhost is not this machine")
	}
}

func FuzzDestination(f *testing.F) {
	for _, seed := range []string{"example.org:443", "[::1]:80", "bücher.example.:1", "0x7f.1:80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDestination(text)
		if err != nil {
			return
		}
		again, err := parseDestination(d.String())
		if err != nil || again != d {
			t.Errorf("%q becomes %q, and that %q %v", text, d, again, err)
		}
		if strings.ContainsAny(d.host, " \t\r\n@/%") {
			t.Errorf("%q is a host", d.host)
		}
	})
}
