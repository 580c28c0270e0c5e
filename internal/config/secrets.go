package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/emptydb"
)

// SecretFinder resolves references to secrets. Paths are relative to the configuration
// file.
func (l *Loaded) SecretFinder(env Environment) secret.Finder {
	folder := ""
	if l.File != "" {
		folder = filepath.Dir(l.File)
	}
	return secret.Finder{
		Getenv: env.Lookup, Folder: folder, Keyring: secret.FromKeyring,
		Problem: func(reference string, cause error) error {
			f := fault.Wrap(fault.Config, cause, "find %s", reference)
			if hint := fault.HintOf(cause); hint != "" {
				return f.WithHint("%s", hint)
			}
			return f.WithHint("a secret is ${env:NAME}, ${file:PATH} or ${keyring:SERVICE/NAME}")
		},
	}
}

// OpenDatabase opens the configured database. Its URL may contain references. A new file
// has all tables.
func (l *Loaded) OpenDatabase(ctx context.Context, secrets secret.Finder) (*db.DB, error) {
	url, err := l.DatabaseURL(secrets)
	if err != nil {
		return nil, err
	}
	return db.Open(ctx, url, db.Options{Initial: emptydb.Content, Address: func() (string, error) { return l.DatabaseURL(secrets) }})
}

// DatabaseURL returns the URL of the database, with its references resolved.
func (l *Loaded) DatabaseURL(secrets secret.Finder) (string, error) {
	url, err := secrets.Find(l.Database)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "database").WithHint("%s", fault.HintOf(err))
	}
	return url.Reveal(), nil
}

// DataLocation returns where data is stored, for messages: the data folder, and the
// database if it is elsewhere.
func (l *Loaded) DataLocation() string {
	if strings.HasPrefix(l.Database, "sqlite:") {
		return l.Data
	}
	return l.Data + " and " + db.RedactURL(l.Database)
}

// ownDatabase reports whether only this machine can use the database.
func (l *Loaded) ownDatabase(secrets secret.Finder) (bool, error) {
	address, err := l.DatabaseURL(secrets)
	if err != nil {
		return false, err
	}
	kind, err := db.KindOf(address)
	return kind == db.SQLite, err
}

// secretFolder is the folder of stored secrets, beside the configuration file.
const secretFolder = "secrets"

// EditedFile returns the configuration file that edits change. It may not exist yet.
func EditedFile(sources Sources) (string, error) {
	file, err := configFile(sources)
	if file == "" {
		file = UserFile(sources.Env)
	}
	return file, err
}

// StoreSecret stores a secret in a file that only its owner can read, beside the
// configuration file, and returns the reference to it.
func StoreSecret(sources Sources, name string, value secret.Text) (reference string, err error) {
	path, err := secretPath(sources, name)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fault.Wrap(fault.Config, err, "store secret")
	}
	if err := os.WriteFile(path, []byte(value.Reveal()+"\n"), 0o600); err != nil {
		return "", fault.Wrap(fault.Config, err, "store secret")
	}
	return secretReference(name), os.Chmod(path, 0o600)
}

func secretReference(name string) string { return "${file:" + secretFolder + "/" + name + "}" }

func secretPath(sources Sources, name string) (string, error) {
	file, err := EditedFile(sources)
	return filepath.Join(filepath.Dir(file), secretFolder, name), err
}

// hasSecret reports whether a secret is stored.
func hasSecret(sources Sources, name string) bool {
	_, _, err := readSecret(sources, name)
	return err == nil
}

// readSecret returns the reference to a stored secret, and its value.
func readSecret(sources Sources, name string) (reference, value string, err error) {
	path, err := secretPath(sources, name)
	if err != nil {
		return "", "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", fault.Wrap(fault.Config, err, "read secret")
	}
	return secretReference(name), strings.TrimRight(string(text), "\r\n"), nil
}

// Secret is a secret that the variables of programs refer to, as secret:NAME.
type Secret struct {
	Value string   `toml:"value" secret:"all" help:"the secret, as a reference: ${file:PATH}, ${env:NAME} or ${keyring:SERVICE/NAME}"`
	Hosts []string `toml:"hosts,omitempty" help:"hosts that get the secret, such as api.github.com or git.example.org:8443; the program gets a placeholder, which is replaced in the headers of its requests to them; without hosts the program gets the secret itself; docs/network.md"`
}

// checkSecrets refuses secrets that cannot be used, and references to unknown ones.
func (c *Config) checkSecrets() error {
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		s := c.Secrets[name]
		if s.Value == "" {
			return fault.New(fault.Config, "secrets.%s: value is missing", name).WithHint("value = \"${file:PATH}\", \"${env:NAME}\" or \"${keyring:SERVICE/NAME}\"")
		}
		if err := egress.CheckHosts(name, s.Hosts); err != nil {
			return fault.Wrap(fault.Config, err, "secrets.%s", name).WithHint("%s", fault.HintOf(err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if err := c.checkReferences(name, c.Upstreams[name].Env); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkReferences(upstream string, env map[string]string) error {
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		name, refers := strings.CutPrefix(env[variable], secret.Prefix)
		if _, known := c.Secrets[name]; !refers || known {
			continue
		}
		hint := fmt.Sprintf("define it: [secrets.%s] with value and hosts", name)
		if near := suggest.Names(name, slices.Sorted(maps.Keys(c.Secrets)), 1); len(near) > 0 {
			hint = fmt.Sprintf("did you mean secret:%s?", near[0])
		}
		return fault.New(fault.Config, "upstreams.%s.env.%s: there is no secret %q", upstream, variable, name).WithHint("%s", hint)
	}
	return nil
}

// withSecrets returns the variables of a program without those for which it gets a
// placeholder, and these.
func (c *Config) withSecrets(env map[string]string) (plain map[string]string, held []profile.Credential) {
	plain = maps.Clone(env)
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		name, refers := strings.CutPrefix(env[variable], secret.Prefix)
		s, known := c.Secrets[name]
		switch {
		case !refers || !known:
			continue
		case len(s.Hosts) == 0:
			plain[variable] = s.Value
		default:
			delete(plain, variable)
			held = append(held, profile.Credential{Name: name, Variable: variable, Value: secret.New(s.Value), Hosts: s.Hosts})
		}
	}
	return plain, held
}

// usedSecrets are the definitions of the secrets that variables refer to, for trust: who
// trusts a program trusts where its secrets go.
func (c *Config) usedSecrets(env map[string]string) []any {
	var used []any
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		if name, refers := strings.CutPrefix(env[variable], secret.Prefix); refers {
			s := c.Secrets[name]
			used = append(used, s.Value, s.Hosts)
		}
	}
	return used
}

// minSecret is the length from which on a value is taken for a secret: shorter ones are
// parts of ordinary words.
const minSecret = 6

// KnownSecrets returns the values in the configuration and the environment that may be
// secret, the longest first, so that they can be removed from a text.
func (l *Loaded) KnownSecrets(env Environment) []string {
	found := secretSet{finder: l.SecretFinder(env), values: map[string]bool{}}
	for name, value := range env {
		if mayBeSecret(name) || l.namesVariable(name) {
			found.add(value)
		}
		found.addURL(value)
	}
	for _, s := range settingsOf(&l.Config) {
		if text, ok := s.field.Interface().(string); ok && s.secret == "" {
			found.addURL(text)
		}
	}
	all := l.Config
	found.addTagged(&all)
	for _, u := range l.Upstreams {
		found.addArgs(u.Args)
	}
	if specs, _, err := l.UpstreamSpecs(env); err == nil { // one with a mistake cannot be used
		for _, spec := range specs {
			found.addTagged(&spec.Settings)
		}
	}
	return found.sorted()
}

// mayBeSecret reports whether the value of a variable may be secret. More names count than
// in redact.Secret, since a wrong guess only hides a value.
func mayBeSecret(name string) bool {
	upper := strings.ToUpper(name)
	return redact.Secret(name) || slices.ContainsFunc([]string{"KEY", "PASS", "PWD", "AUTH", "DSN"}, func(word string) bool {
		return strings.Contains(upper, word) && upper != "PWD" && upper != "OLDPWD"
	})
}

// namesVariable reports whether the configuration takes a credential from a variable.
func (l *Loaded) namesVariable(name string) bool {
	for _, u := range l.Upstreams {
		if u.BearerEnv == name {
			return true
		}
	}
	for _, key := range l.Keys {
		if key.Env == name {
			return true
		}
	}
	return l.Chat.KeyEnv == name
}

// secretSet collects secrets.
type secretSet struct {
	finder secret.Finder
	values map[string]bool
}

// add adds a value, and what it refers to.
func (s secretSet) add(text string) {
	if secret.IsReference(text) {
		found, err := s.finder.Find(text)
		if err != nil {
			return // it cannot be found here, so it is not here
		}
		text = found.Reveal()
	}
	for _, part := range []string{text, strings.TrimPrefix(text, "Bearer ")} {
		if len(part) >= minSecret {
			s.values[part] = true
		}
	}
}

// addTagged adds what the fields of settings tag as secret.
func (s secretSet) addTagged(settings any) {
	_ = tagged.Texts(settings, "secret", func(kind, text string) (string, error) {
		switch kind {
		case "all", "values":
			s.add(text)
		case "url", "address", "query":
			s.addURL(text)
		}
		return text, nil
	})
}

// addArgs adds arguments of a command that look secret.
func (s secretSet) addArgs(args []string) {
	for i, shown := range redact.Args(args) {
		if shown != args[i] {
			_, value, assigned := strings.Cut(args[i], "=")
			if !assigned {
				value = args[i]
			}
			s.add(value)
		}
	}
}

// addURL adds the password and the values of the query of a URL.
func (s secretSet) addURL(text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return
	}
	if password, has := u.User.Password(); has {
		s.add(password)
	}
	for _, values := range u.Query() {
		for _, value := range values {
			s.add(value)
		}
	}
}

func (s secretSet) sorted() []string {
	list := make([]string, 0, len(s.values))
	for value := range s.values {
		list = append(list, value)
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return list
}
