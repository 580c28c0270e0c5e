package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
)

// Need is a value that a person can give.
type Need struct {
	Kind        string   `json:"kind"` // env, header, or set for arguments and variables
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Default     string   `json:"default,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Secret      bool     `json:"secret,omitempty"`
}

// Flag returns how to give the value on the command line.
func (n Need) Flag() string {
	switch n.Kind {
	case "env":
		return "-e " + n.Name + "=VALUE"
	case "header":
		return "--header " + n.Name + "=VALUE"
	default:
		return "--set " + n.Name + "=VALUE"
	}
}

// Launch is how to start or reach a server.
type Launch struct {
	Command   string
	Args      []string
	Env       map[string]string
	URL       string
	Transport string
	Headers   map[string]string
	Needs     []Need // everything that can be given
	Missing   []Need // what is required and was not given
}

// Values are what a person gave, by Need.Kind and Need.Name. Store replaces a secret
// value of the environment or of a header by a reference to it; nil keeps it.
type Values struct {
	Given map[string]map[string]string
	Store func(name, value string) (reference string, err error)
}

// Launch returns how to start or reach a server: by its first package that can be
// started here, or by its first remote; remote prefers the latter.
func (s Server) Launch(remote bool, values Values) (Launch, error) {
	r := resolver{values: values}
	at := slices.IndexFunc(s.Packages, Package.supported)
	var l Launch
	switch {
	case len(s.Remotes) > 0 && (remote || at < 0):
		l = r.remote(s.Remotes[0])
	case at >= 0 && !remote:
		l = r.pack(s.Packages[at])
	default:
		return l, fault.New(fault.InvalidParams, "%s cannot be used from here: %s", s.Name, s.offers()).
			WithHint("install it as its author says, and add it with `luanette upstream add`: %s", s.WebsiteURL)
	}
	l.Needs, l.Missing = r.needs, r.missing
	return l, r.err
}

// supported reports whether a package can be started as it is.
func (p Package) supported() bool {
	return (p.Transport.Type == "" || p.Transport.Type == "stdio") && slices.Contains([]string{"npm", "pypi", "oci", "nuget"}, p.RegistryType)
}

func (s Server) offers() string {
	var kinds []string
	for _, p := range s.Packages {
		kinds = append(kinds, fmt.Sprintf("a package of type %s with transport %s", p.RegistryType, p.Transport.Type))
	}
	if len(kinds) == 0 {
		return "it has no package and no remote"
	}
	return "it has only " + strings.Join(kinds, ", ")
}

// resolver replaces inputs by values.
type resolver struct {
	values  Values
	needs   []Need
	missing []Need
	err     error
}

func (r *resolver) remote(t Transport) Launch {
	l := Launch{Transport: "http", URL: r.fill(t.URL, t.Variables, false)}
	if t.Type == "sse" {
		l.Transport = "sse"
	}
	l.Headers = r.table("header", t.Headers)
	return l
}

func (r *resolver) pack(p Package) Launch {
	l := Launch{Env: r.table("env", p.EnvironmentVariables)}
	before, after := r.arguments(p.RuntimeArguments), r.arguments(p.PackageArguments)
	reference := p.Identifier
	if p.Version != "" && p.RegistryType != "oci" {
		reference += "@" + p.Version
	}
	switch p.RegistryType {
	case "npm":
		l.Command = "npx"
		if (p.RuntimeHint == "" || p.RuntimeHint == "npx") && !slices.Contains(before, "-y") {
			before = append(before, "-y")
		}
	case "pypi":
		l.Command = "uvx"
	case "nuget":
		l.Command = "dnx"
		after = append([]string{"--"}, after...)
	default:
		l.Command = "docker"
		before = append([]string{"run", "-i", "--rm"}, before...)
		for _, name := range slices.Sorted(maps.Keys(l.Env)) {
			before = append(before, "-e", name)
		}
	}
	if p.RuntimeHint != "" {
		l.Command = p.RuntimeHint
	}
	l.Args = slices.Concat(before, []string{reference}, after)
	return l
}

func (r *resolver) table(kind string, variables []Variable) map[string]string {
	table := map[string]string{}
	for _, v := range variables {
		if value, ok := r.input(kind, v.Name, v.Input, true); ok {
			table[v.Name] = value
		}
	}
	return table
}

func (r *resolver) arguments(list []Argument) (args []string) {
	for _, a := range list {
		if a.Type == "named" {
			args = append(args, r.named(a)...)
		} else if value, ok := r.input("set", a.ValueHint, a.Input, false); ok {
			args = append(args, value)
		}
	}
	return args
}

// named returns an argument with a name. One that has neither a value nor anything to
// say about one is a flag.
func (r *resolver) named(a Argument) []string {
	flag := a.Value == "" && a.Default == "" && a.Description == "" && !a.IsRequired && len(a.Choices) == 0
	value, ok := r.input("set", strings.TrimLeft(a.Name, "-"), a.Input, false)
	switch {
	case ok && value != "":
		return []string{a.Name, value}
	case ok || flag:
		return []string{a.Name}
	default:
		return nil
	}
}

// input returns the value of an input; ok is false if there is none. hidden says that
// secrets become references.
func (r *resolver) input(kind, name string, in Input, hidden bool) (value string, ok bool) {
	if in.Value != "" {
		return r.fill(in.Value, in.Variables, hidden), true
	}
	need := Need{kind, name, in.Description, in.Default, in.Choices, in.IsRequired, in.IsSecret}
	r.needs = append(r.needs, need)
	value, ok = r.values.Given[kind][name]
	switch {
	case ok:
		return r.given(name, value, in, hidden), true
	case in.Default != "":
		return in.Default, true
	case in.IsRequired:
		r.missing = append(r.missing, need)
	}
	return "", false
}

// given checks a value and stores it if it is secret.
func (r *resolver) given(name, value string, in Input, hidden bool) string {
	if len(in.Choices) > 0 && !slices.Contains(in.Choices, value) {
		r.err = fault.New(fault.InvalidParams, "%s: %q is not one of the choices", name, value).WithHint("use %s", strings.Join(in.Choices, ", "))
		return value
	}
	if !in.IsSecret || !hidden || r.values.Store == nil || value == "" {
		return value
	}
	reference, err := r.values.Store(name, value)
	if err != nil {
		r.err = err
	}
	return reference
}

var variable = lazyregexp.New(`\{([A-Za-z0-9_.-]+)\}`)

// fill replaces the variables in a text. Unknown ones stay.
func (r *resolver) fill(text string, variables map[string]Input, hidden bool) string {
	return variable().ReplaceAllStringFunc(text, func(form string) string {
		name := form[1 : len(form)-1]
		in, known := variables[name]
		if !known {
			return form
		}
		if value, ok := r.input("set", name, in, hidden); ok {
			return value
		}
		return ""
	})
}
