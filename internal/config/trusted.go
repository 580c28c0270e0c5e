package config

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/realpath"
	"github.com/luanette/luanette/internal/config/trust"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Values of the tag trust: a file that is not trusted may not set the setting, or may not
// set it to a value that involves other machines.
const (
	trustNeeded = "needed"
	trustRemote = "remote"
)

// trusting is what is known about the trust in a configuration file.
type trusting struct {
	found    bool         // in the working folder, so that not everything in it is trusted
	items    []trust.Item // everything in the file that needs trust
	withheld []trust.Item // those of them that are not trusted
}

// isOwn reports whether a configuration file that was found in the working folder belongs
// to the user as those in the configuration folder do: whoever can write to the home
// folder can write there, too.
func isOwn(path string, env Environment) bool {
	folder := realpath.Of(filepath.Dir(path))
	for _, own := range []string{filepath.Join(env["HOME"], "luanette.toml"), UserFile(env)} {
		if filepath.IsAbs(own) && realpath.Of(filepath.Dir(own)) == folder {
			return true
		}
	}
	return false
}

// TrustStore is where the user's trust is stored. A configuration file cannot choose it.
func TrustStore(env Environment) trust.Store {
	switch folder := cmp.Or(env["XDG_STATE_HOME"], env["LOCALAPPDATA"]); {
	case folder != "":
		return trust.Store{Path: filepath.Join(folder, "luanette", "trust.json")}
	case env["HOME"] != "":
		return trust.Store{Path: filepath.Join(env["HOME"], ".local", "state", "luanette", "trust.json")}
	}
	return trust.Store{}
}

// FoundHere reports whether the file is used only because it is in the working folder.
func (l *Loaded) FoundHere() bool { return l.trusting.found }

// NeedingTrust returns everything in the file that a file of somebody else may not do.
func (l *Loaded) NeedingTrust() []trust.Item { return l.trusting.items }

// Withheld returns what the file asks for and does not get, since it is not trusted.
func (l *Loaded) Withheld() []trust.Item { return l.trusting.withheld }

// withholds reports whether the item of a key is withheld.
func (l *Loaded) withholds(key string) bool {
	return slices.ContainsFunc(l.trusting.withheld, func(item trust.Item) bool { return item.Key == key })
}

// withhold finds what needs trust, and resets the settings that are not trusted.
func (l *Loaded) withhold(env Environment) (err error) {
	t := &l.trusting
	var hashes map[string]string
	if t.found {
		if hashes, err = TrustStore(env).Trusted(l.File); err != nil {
			return err
		}
	}
	fresh := defaults(env)
	standard := settingsOf(&fresh)
	for i, s := range settingsOf(&l.Config) {
		if l.Origins[s.key] != originFile || !s.needsTrust() {
			continue
		}
		item := l.settingItem(s)
		if !t.add(item, hashes) {
			s.field.Set(standard[i].field)
			delete(l.Origins, s.key)
		}
	}
	for _, item := range l.upstreamItems() {
		t.add(item, hashes)
	}
	l.Hooks = withholdTable(t, l.Hooks, l.hookItem, hashes)
	l.Tools = withholdTable(t, l.Tools, l.toolItem, hashes)
	return nil
}

// withholdTable returns the entries of a table that are trusted; all of them need trust.
func withholdTable[T any](t *trusting, entries map[string]T, item func(name string) trust.Item, hashes map[string]string) map[string]T {
	kept := map[string]T{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if t.add(item(name), hashes) {
			kept[name] = entries[name]
		}
	}
	return kept
}

// add adds an item and reports whether it is trusted, given the hashes of what is.
func (t *trusting) add(item trust.Item, hashes map[string]string) (trusted bool) {
	t.items = append(t.items, item)
	if trusted = !t.found || hashes[item.Key] == item.Hash; !trusted {
		t.withheld = append(t.withheld, item)
	}
	return trusted
}

// needsTrust reports whether the value of a setting needs trust.
func (s setting) needsTrust() bool {
	switch {
	case s.trust == "" || s.field.IsZero():
		return false
	case s.trust == trustNeeded:
		return true
	}
	text := s.field.String()
	if strings.HasPrefix(text, "sqlite:") {
		return false
	}
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return s.key == "database" || !ListensLocally(u.Host)
	}
	return !ListensLocally(text)
}

// settingItem returns a setting as an item. For a script its content counts.
func (l *Loaded) settingItem(s setting) trust.Item {
	content := fmt.Sprint(s.field.Interface())
	if s.key == "scripts.startup" {
		content += " " + hashOf(l.beside(s.field.String()))
	}
	return trust.NewItem(s.key, fmt.Sprint(s.shown()), content)
}

// hashOf returns the hash of a file's content, or "" if there is none.
func hashOf(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// upstreamItems returns the upstreams of the file, and of those that it imports, that
// need trust.
func (l *Loaded) upstreamItems() (items []trust.Item) {
	for _, name := range slices.Sorted(maps.Keys(l.Upstreams)) {
		if item, needed := l.trustItem(name); needed {
			items = append(items, item)
		}
	}
	for _, path := range l.MCP.Import {
		specs, _ := l.importServers(path, unexpanded) // UpstreamSpecs reports what is wrong
		content := hashOf(l.beside(path))             // the files have many dialects, so any change of one counts
		for _, spec := range specs {
			if needsTrust(spec) {
				items = append(items, trust.NewItem(importedKey(path, spec.Name), doesUpstream(spec), content))
			}
		}
	}
	return items
}

// unexpanded looks variables up so that references to them stay visible.
func unexpanded(name string) (string, bool) { return "${" + name + "}", true }

// Keys of upstreams as items.
func upstreamKey(name string) string       { return "upstreams." + name }
func importedKey(path, name string) string { return path + ": " + name }

// trustItem returns an upstream as an item, and whether it needs trust: it starts a program
// or sends something that the address alone does not say, or writes a file. A recording
// that is used in place of the server does nothing.
func (l *Loaded) trustItem(name string) (item trust.Item, needed bool) {
	u := l.Upstreams[name]
	content := append(trustedValues(u, "content"), l.usedSecrets(u.Env)...)
	spec := upstream.Spec{Settings: u.WithAPI()}
	if !spec.API.IsZero() {
		content = append(content, spec.API.Source, zeroAsNil(u.API))
	}
	if reach := trustedValues(u, "sandbox"); slices.ContainsFunc(reach, func(v any) bool { return !isEmpty(v) }) {
		content = append(content, reach...)
	}
	if len(u.InstallScripts) > 0 {
		content = append(content, trustedValues(u, "scripts")...)
	}
	if u.EnvFile != "" {
		content = append(content, hashOf(l.beside(u.EnvFile)))
	}
	if u.Record != "" {
		return trust.NewItem(upstreamKey(name), "writes to "+u.Record, append(content, u.Record)), true
	}
	return trust.NewItem(upstreamKey(name), doesUpstream(spec), content), u.Mock == "" && (zeroAsNil(u.OAuth) != nil || needsTrust(spec))
}

// trustedValues are the values of the fields whose tag trust is kind, in their order.
func trustedValues(u Upstream, kind string) (values []any) {
	for field, value := range reflect.ValueOf(u).Fields() {
		if field.Tag.Get("trust") == kind {
			values = append(values, zeroAsNil(value.Interface()))
		}
	}
	return values
}

// zeroAsNil is nil for a table that is not in the file.
func zeroAsNil(value any) any {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Struct && v.IsZero() {
		return nil
	}
	return value
}

func isEmpty(value any) bool {
	v := reflect.ValueOf(value)
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

func doesUpstream(spec upstream.Spec) string {
	switch {
	case spec.Command != "":
		return "starts " + spec.Target()
	case !spec.API.IsZero():
		return "sends requests to the API of " + spec.Target()
	case strings.Contains(spec.URL, "${"):
		return "sends variables to " + spec.Target()
	}
	return "sends credentials to " + spec.Target()
}

func needsTrust(spec upstream.Spec) bool {
	if spec.Command != "" || !spec.API.IsZero() || spec.BearerEnv != "" || strings.Contains(spec.URL, "${") {
		return true
	}
	for _, value := range spec.Headers {
		if strings.Contains(value, "${") {
			return true
		}
	}
	return false
}

// Trust trusts everything in the file as it is now.
func (l *Loaded) Trust(ctx context.Context, env Environment) error {
	store := TrustStore(env)
	if _, err := store.Remove(ctx, l.File); err != nil {
		return err
	}
	return store.Add(ctx, l.File, l.trusting.items...)
}

// TrustUpstreams trusts upstreams of the configuration file as they are now. It is for
// commands that wrote them for the user.
func TrustUpstreams(ctx context.Context, sources Sources, names ...string) error {
	return trustWritten(ctx, sources, func(key string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return key == upstreamKey(name) })
	})
}

// trustWritten trusts what was written to the configuration file under some keys.
func trustWritten(ctx context.Context, sources Sources, isWritten func(key string) bool) error {
	loaded, err := Load(sources)
	if err != nil || !loaded.trusting.found {
		return err
	}
	var written []trust.Item
	for _, item := range loaded.trusting.withheld {
		if isWritten(item.Key) {
			written = append(written, item)
		}
	}
	if len(written) == 0 {
		return nil
	}
	return TrustStore(sources.Env).Add(ctx, loaded.File, written...)
}

// foundHere reports whether a file is used only because it is in the working folder.
func foundHere(file string, sources Sources) bool {
	return sources.File == "" && sources.Env[configVariable] == "" && file == localFile && !isOwn(file, sources.Env)
}

// WithheldUpstreams returns what upstreams that are not trusted would do, by name.
func (l *Loaded) WithheldUpstreams() map[string]string {
	names := map[string]string{}
	for _, item := range l.trusting.withheld {
		_, name, imported := strings.Cut(item.Key, ": ")
		if own, ok := strings.CutPrefix(item.Key, upstreamKey("")); ok && !imported {
			name = own
		}
		if name != "" {
			names[name] = item.Does
		}
	}
	return names
}
