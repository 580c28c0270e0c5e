package redact

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// lines reads a file of testdata without its comments.
func lines(t testing.TB, name string) (list []string) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		if line := scanner.Text(); !strings.HasPrefix(line, "# ") {
			list = append(list, line)
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

const alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

var alphabets = map[string]string{
	"B": alnum, "U": "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "L": "abcdefghijklmnopqrstuvwxyz0123456789",
	"H": "0123456789abcdef", "D": "0123456789", "W": alnum + "_-", "S": alnum + "+/",
}

var randomPart = regexp.MustCompile(`\{([BULHDWS])(\d+)\}`)

// fill replaces the random parts of a template and returns them too.
func fill(template string, r *rand.Rand) (text string, parts []string) {
	text = randomPart.ReplaceAllStringFunc(strings.ReplaceAll(template, "~", ""), func(part string) string {
		alphabet := alphabets[part[1:2]]
		n, _ := strconv.Atoi(part[2 : len(part)-1]) // the pattern allows digits only
		word := make([]byte, n)
		for i := range word {
			word[i] = alphabet[r.IntN(len(alphabet))]
		}
		parts = append(parts, string(word))
		return string(word)
	})
	return strings.ReplaceAll(text, `\n`, "\n"), parts
}

// notSecret are random parts of shapes that may be seen: names and ids of accounts.
var notSecret = regexp.MustCompile(`^(twilio in json|asana|discord webhook|telegram.*|braintree)$`)

// TestSecretShapes checks that the secret of every shape is hidden: by itself, in a
// sentence, as an argument, and in JSON.
func TestSecretShapes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	shapes := lines(t, "shapes.txt")
	if len(shapes) < 200 {
		t.Errorf("only %d shapes", len(shapes))
	}
	for _, shape := range shapes {
		name, template, _ := strings.Cut(shape, "\t")
		for range 25 {
			text, parts := fill(template, r)
			if notSecret.MatchString(name) {
				parts = parts[len(parts)-1:]
			}
			args, err := json.Marshal(map[string]any{"text": text, "list": []string{text}})
			if err != nil {
				t.Fatal(err)
			}
			for where, shown := range map[string]string{"alone": Text(text), "sentence": Text("please use " + text + " for it"), "arguments": JSON(args)} {
				for _, part := range parts {
					if len(part) >= 4 && strings.Contains(shown, part) {
						t.Errorf("%s, %s: %q shows %q", name, where, text, shown)
					}
				}
			}
		}
	}
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// ordinary returns arguments that contain nothing secret.
func ordinary(t testing.TB) (list []string) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	words := strings.Fields(strings.Join(lines(t, "ordinary.txt"), " "))
	letters := regexp.MustCompile(`^[A-Za-z]{2,12}$`)
	var plain []string
	for _, w := range words {
		if letters.MatchString(w) && !Secret(w) {
			plain = append(plain, strings.ToLower(w))
		}
	}
	word := func() string { return plain[r.IntN(len(plain))] }
	long := func() string { return title(word() + word() + word()) }
	part := func(template string) string { text, _ := fill(template, r); return text }
	data := func(prefix string, n int) string {
		text := []byte(prefix)
		for range n {
			text = append(text, byte(r.IntN(256)))
		}
		return base64.StdEncoding.EncodeToString(text)
	}
	makers := []func() string{
		func() string { return part("{H8}-{H4}-4{H3}-a{H3}-{H12}") },
		func() string { return part("{H32}") },
		func() string { return "commit " + part("{H40}") },
		func() string { return part("sha256:{H64}") },
		func() string { return part("cas:{H64}") },
		func() string { return "sha512-" + data("", 64) },
		func() string { return part("01{U24}") },
		func() string {
			return "/home/" + word() + "/" + word() + "/" + title(word()) + part("{D2}/IMG_{D8}_{D6}.JPG")
		},
		func() string { return `C:\Users\` + word() + `\` + word() + part(`\{D4}`) + `\report.docx` },
		func() string { return "src/" + word() + "/" + word() + "_" + word() + ".test.ts:" + part("{D3}:{D2}") },
		func() string {
			return "data:image/png;base64," + data("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", 40+r.IntN(400))
		},
		func() string { return data("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", 60+r.IntN(400)) },
		func() string { return data("\xff\xd8\xff\xe0\x00\x10JFIF", 60+r.IntN(400)) },
		func() string { return data("GIF89a", 40) },
		func() string {
			return base64.StdEncoding.EncodeToString([]byte(word() + " " + word() + " " + word() + "\n" + word()))
		},
		func() string {
			return "https://" + word() + ".example.com/" + word() + "/" + part("{D6}") + "?page=2&sort=" + word() + "#" + word()
		},
		func() string { return word() + "." + word() + "@example.com" },
		func() string { return part("2026-11-{D2}T10:{D2}:{D2}.{D6}Z") },
		func() string {
			return "SELECT " + word() + ", " + word() + " FROM " + word() + " WHERE id = '" + part("{H8}-{H4}-4{H3}-a{H3}-{H12}") + "'"
		},
		func() string {
			return strings.Join([]string{word(), word(), word(), word(), word(), word(), word()}, " ") + "."
		},
		func() string {
			return `{"` + word() + `":"` + word() + `","count":` + part("{D5}") + `,"id":"` + part("{H24}") + `"}`
		},
		func() string { return "v1." + part("{D2}.{D1}") + "-0.20261104120000-" + part("{H12}") },
		func() string { return word() + long() + long() + "V2" + long() + "ForHTTP2" },
		func() string { return "0x" + hex.EncodeToString([]byte(word()+word())) },
	}
	list = lines(t, "ordinary.txt")
	for len(list) < 10_000 {
		list = append(list, makers[len(list)%len(makers)]())
	}
	return list
}

// TestOrdinaryArguments checks that nothing is hidden where there is nothing secret.
func TestOrdinaryArguments(t *testing.T) {
	t.Parallel()
	wrong := 0
	for _, line := range ordinary(t) {
		if shown := Text(line); shown != line {
			if wrong++; wrong <= 20 {
				t.Errorf("%s\nis shown as\n%s", line, shown)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d lines are wrong", wrong)
	}
}

func BenchmarkJSON(b *testing.B) {
	text := strings.Join(ordinary(b)[:40], "\n")
	long, err := json.Marshal(map[string]string{"code": text})
	if err != nil {
		b.Fatal(err)
	}
	for name, args := range map[string]string{
		"plain": `{"path":"/home/anna/notes/today.md","limit":20}`,
		"url":   `{"url":"https://example.com/a/b?page=2","method":"GET"}`,
		fmt.Sprint("code of ", len(long), " bytes"): string(long),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				JSON(json.RawMessage(args))
			}
		})
	}
}
