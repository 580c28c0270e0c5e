package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/core/principal"
)

// Whose account the calls of an upstream use, for Spec.Login.
const (
	LoginShared   = "shared"   // one connection for everybody
	LoginEach     = "each"     // a connection and a login of each principal
	LoginExchange = "exchange" // the same, with tokens that are exchanged for those of the principal (RFC 8693)
	LoginIDJAG    = "id-jag"   // the same, by an identity assertion of the company's provider
)

// Defaults of upstreams that have a connection for each principal.
const (
	DefaultPeople = 50               // how many may be connected at a time
	personalIdle  = 10 * time.Minute // after which time without a call a connection ends
)

// Person is who a connection acts for.
type Person struct {
	ID    string
	Name  string
	Email string
	Org   string
}

// Personal reports whether every principal has a connection of its own.
func (s Spec) Personal() bool { return s.Login != "" && s.Login != LoginShared }

// canList reports whether the server may list its tools without an owner. One that trusts the
// company's provider wants a token, and would only log that there was none.
func (s Spec) canList() bool { return !s.needsPerson() && s.Login != LoginIDJAG }

func (s Spec) people() int {
	if s.People == 0 {
		return DefaultPeople
	}
	return s.People
}

// idle is the time without a call after which a server that was started on use is
// stopped; zero means never.
func (s Spec) idle() time.Duration {
	if s.Personal() {
		return positive(time.Duration(s.Idle), personalIdle)
	}
	return time.Duration(s.Idle)
}

func (s Spec) loginProblem() error {
	switch {
	case !slices.Contains([]string{"", LoginShared, LoginEach, LoginExchange, LoginIDJAG}, s.Login):
		return fmt.Errorf("login %q is not shared, each, exchange or id-jag", s.Login)
	case s.People < 0:
		return fmt.Errorf("people %d is less than zero", s.People)
	case !s.Personal():
		return s.sharedProblem()
	case s.Login != LoginEach && s.URL == "" && s.API.IsZero():
		return fmt.Errorf("login %q needs a url", s.Login)
	case s.Record != "":
		return fmt.Errorf("record with login %q would store the answers that several people got in one file", s.Login)
	case isZMQ(s.transport()):
		return fmt.Errorf("login %q is not possible over %s", s.Login, s.transport())
	}
	return s.variableProblem()
}

// programName is the name under which the files of a process are kept apart from those of
// others.
func (s Spec) programName() string {
	if s.Owner == "" {
		return s.Name
	}
	sum := sha256.Sum256([]byte(s.Owner))
	return s.Name + "-" + hex.EncodeToString(sum[:6])
}

// personalForm is a variable with a property of the person, or a value that the person has
// stored: ${person.email}, ${personal:GITHUB_TOKEN}.
var personalForm = lazyregexp.New(`\$\{(?:person\.([a-z]+)|personal:([A-Za-z_][A-Za-z0-9_]{0,63}))\}`)

// looksPersonal matches also what is not quite such a variable, to report it.
var looksPersonal = lazyregexp.New(`\$\{person(al)?[.:][^}]*\}`)

// personProperties are the names after ${person.
var personProperties = map[string]func(Person) string{
	"id":    func(p Person) string { return p.ID },
	"name":  func(p Person) string { return p.Name },
	"email": func(p Person) string { return p.Email },
	"org":   func(p Person) string { return p.Org },
}

// personalTexts are the texts in which properties of a person may be, and those in which
// values that the person has stored may be, too.
func (s Spec) personalTexts() (open, secret []string) {
	_ = tagged.Texts(&s.Settings, "vars", func(kind, text string) (string, error) {
		if kind == "secret" {
			secret = append(secret, text)
		}
		return text, nil
	})
	return append(slices.Clone(s.Args), s.query()), secret
}

func (s Spec) query() string {
	_, query, _ := strings.Cut(s.URL, "?")
	return query
}

// needsPerson reports whether the server cannot be reached without a person.
func (s Spec) needsPerson() bool {
	open, secret := s.personalTexts()
	return slices.ContainsFunc(slices.Concat(open, secret), personalForm().MatchString)
}

// sharedProblem reports variables of people in a spec that acts for nobody in particular.
func (s Spec) sharedProblem() error {
	open, secret := s.personalTexts()
	for _, text := range slices.Concat(open, secret) {
		if form := personalForm().FindString(text); form != "" {
			return fmt.Errorf("%s needs login = \"each\": this connection is for everybody", form)
		}
	}
	return nil
}

// variableProblem reports variables of people that do not exist, or that are where they
// cannot be.
func (s Spec) variableProblem() error {
	open, secret := s.personalTexts()
	address, _, _ := strings.Cut(s.URL, "?")
	for _, text := range []string{address, s.Command, s.Cwd, s.EnvFile} {
		if form := looksPersonal().FindString(text); form != "" {
			return fmt.Errorf("%s can be in headers, env, args and the query of the url only", form)
		}
	}
	for _, form := range looksPersonal().FindAllString(strings.Join(slices.Concat(open, secret), "\n"), -1) {
		parts := personalForm().FindStringSubmatch(form)
		if parts == nil || parts[1] != "" && personProperties[parts[1]] == nil {
			return fmt.Errorf("%s is not known: there are ${person.id}, ${person.name}, ${person.email}, ${person.org} and ${personal:NAME}", form)
		}
	}
	for _, parts := range personalForm().FindAllStringSubmatch(strings.Join(open, "\n"), -1) {
		if parts[2] != "" {
			return fmt.Errorf("%s can be in headers and env only: arguments and addresses are not kept secret", parts[0])
		}
	}
	return nil
}

// personalValues are what the variables of a spec stand for, by their form.
type personalValues struct {
	values map[string]string
	hidden []string // those that are secret
}

// replace replaces the variables in a text. What they stand for is not read again.
func (v *personalValues) replace(text string) string {
	if v == nil {
		return text
	}
	return personalForm().ReplaceAllStringFunc(text, func(form string) string { return v.values[form] })
}

// secrets are the values that must not be shown.
func (v *personalValues) secrets() []string {
	if v == nil {
		return nil
	}
	return v.hidden
}

// resolve is the spec for one attempt to connect, with the values of its person.
func (o *Options) resolve(ctx context.Context, spec Spec) (Spec, error) {
	if !spec.Personal() || !spec.needsPerson() {
		return spec, nil
	}
	found := &personalValues{values: map[string]string{}}
	open, secret := spec.personalTexts()
	for _, text := range slices.Concat(open, secret) {
		for _, parts := range personalForm().FindAllStringSubmatch(text, -1) {
			value, err := o.personalValue(ctx, spec, parts[1], parts[2])
			if err != nil {
				return spec, err
			}
			found.values[parts[0]] = value
			if parts[2] != "" {
				found.hidden = append(found.hidden, value)
			}
		}
	}
	spec.personal, spec.Args = found, slices.Clone(spec.Args)
	for i, arg := range spec.Args {
		spec.Args[i] = found.replace(arg)
		if spec.Args[i] != arg && !plainArgument(arg, found) {
			return spec, fault.New(fault.NeedsAuth, "upstream %s: a property of %s cannot be an argument of a program", spec.Name, spec.Person.ID).
				WithHint("arguments take letters, digits and @ . _ + - only; the administrator can use an environment variable instead")
		}
	}
	if query := spec.query(); query != "" {
		address, _, _ := strings.Cut(spec.URL, "?")
		spec.URL = address + "?" + personalForm().ReplaceAllStringFunc(query, func(form string) string { return url.QueryEscape(found.values[form]) })
	}
	return spec, nil
}

// personalValue is a property of the spec's person, or a value that the person has stored.
func (o *Options) personalValue(ctx context.Context, spec Spec, property, name string) (value string, err error) {
	what := "${personal:" + name + "}"
	if property != "" {
		what, value = property, personProperties[property](spec.Person)
	} else if value, err = o.storedValue(ctx, spec, name); err != nil {
		return "", err
	}
	switch {
	case value == "":
		return "", fault.New(fault.NeedsAuth, "upstream %s needs the %s of whoever calls it, and %s has none", spec.Name, what, spec.Person.ID).
			WithHint("sign in as a person who has one")
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return "", fault.New(fault.NeedsAuth, "upstream %s: the %s of %s has characters that cannot be sent", spec.Name, what, spec.Person.ID)
	}
	return value, nil
}

func (o *Options) storedValue(ctx context.Context, spec Spec, name string) (string, error) {
	if o.Personal == nil {
		return "", fault.New(fault.NeedsAuth, "upstream %s needs ${personal:%s}, and values of people are not stored here", spec.Name, name)
	}
	found, err := o.Personal(ctx, spec.Owner, name)
	if fault.CodeOf(err) == fault.NotFound {
		if _, chats := principal.SplitLoginOwner(spec.Owner); chats != "" {
			why, hint := principal.LacksLogin(spec.Owner)
			return "", fault.New(fault.NeedsAuth, "upstream %s needs a value %s of each person: %s", spec.Name, name, why).WithHint("%s", hint)
		}
		return "", fault.New(fault.NeedsAuth, "upstream %s needs your own value %s", spec.Name, name).
			WithHint("set it with luanette secret set %s, on the page You, or with PUT /api/v1/me/secrets/%s and {\"value\": \"…\"}; then call again", name, name)
	}
	return found.Reveal(), err
}

// plainArgument reports whether the values in an argument can neither be taken for an
// option nor mean anything to a shell.
func plainArgument(arg string, found *personalValues) bool {
	for _, at := range personalForm().FindAllStringIndex(arg, -1) {
		value := found.values[arg[at[0]:at[1]]]
		if at[0] == 0 && strings.HasPrefix(value, "-") || strings.ContainsFunc(value, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@._+-", r)
		}) {
			return false
		}
	}
	return true
}
