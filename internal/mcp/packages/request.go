package packages

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/lazyregexp"
)

// Start is how an upstream's program is started, as it is configured.
type Start struct {
	Command string
	Args    []string
	Env     []string // all variables of the program, as NAME=value
	Install []string // those of npm: settings of registries, and no secrets of the program
	Dir     string   // its working folder; empty: ours
	Path    string   // where programs are looked up
	Scripts []string // the packages whose install scripts may run
}

// Request is what a command of npx means.
type Request struct {
	Specs []string // the packages as they are written: NAME or NAME@VERSION
	Bin   string   // the program of theirs to run; empty: that of the first
	Args  []string // of the program
	Start Start
}

// Key identifies what is installed for a request: different ranges, scripts and registries are
// different installations.
func (r Request) Key() string {
	key := strings.Join(r.Specs, " ")
	if len(r.Start.Scripts) > 0 {
		key += " scripts:" + strings.Join(slices.Sorted(slices.Values(r.Start.Scripts)), ",")
	}
	if own := slices.Sorted(slices.Values(registries(r.Start.Install))); len(own) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(own, "\n")))
		key += " registry:" + hex.EncodeToString(sum[:4])
	}
	return key
}

// registries are the variables that choose another registry than the usual one.
func registries(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return !isSettingOfNPM(entry) || !strings.HasSuffix(strings.ToLower(name), "registry") || strings.HasPrefix(value, "https://registry.npmjs.org")
	})
}

func isSettingOfNPM(entry string) bool {
	return strings.HasPrefix(strings.ToLower(entry), "npm_config_")
}

// Parse recognises a command that means npx. reason says why it is started as it is written, if
// it is; it is empty for a program that has nothing to do with npm.
func Parse(start Start) (request Request, reason string) {
	words := npxWords(start.Command, start.Args)
	if words == nil {
		return Request{}, otherLauncher(start.Command, start.Args)
	}
	request, reason = words.parse()
	if filepath.IsAbs(start.Command) { // node and npm are beside it
		start.Path = filepath.Dir(start.Command) + string(os.PathListSeparator) + start.Path
	}
	request.Start = start
	if reason == "" {
		reason = request.local()
	}
	if reason != "" {
		return Request{}, reason
	}
	return request, ""
}

// npx is a command of npx: its words, and whether options may also follow the package, as those
// of `npm exec` do.
type npx struct {
	words []string
	exec  bool
}

// npxWords returns the words after npx or `npm exec`; nil if the command is another one.
func npxWords(command string, args []string) *npx {
	switch name, words := behindWrapper(command, args); {
	case name == "npx":
		return &npx{words: words}
	case name == "npm" && len(words) > 0 && (words[0] == "exec" || words[0] == "x"):
		return &npx{words: words[1:], exec: true}
	}
	return nil
}

// behindWrapper returns the name of the program that a command is about, and its arguments: that
// after cmd /c, and npx or npm where node runs their scripts.
func behindWrapper(command string, args []string) (name string, words []string) {
	name = programName(command)
	if len(args) == 0 {
		return name, args
	}
	switch script := filepath.Base(args[0]); {
	case name == "cmd" && len(args) > 1 && strings.EqualFold(args[0], "/c"):
		return behindWrapper(args[1], args[2:])
	case name == "node" && (script == "npx-cli.js" || script == "npm-cli.js"):
		return strings.TrimSuffix(script, "-cli.js"), args[1:]
	}
	return name, args
}

// programName is the name of a program without its folder and the endings of Windows.
func programName(command string) string {
	name := strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
	for _, ending := range []string{".cmd", ".exe", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// IsRunner reports whether a program installs packages before it runs them.
func IsRunner(command string) bool {
	return slices.Contains([]string{"npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "uv", "uvx", "pipx"}, programName(command))
}

// otherLaunchers are package runners beside npx, with what their arguments begin with where
// they also do other things.
var otherLaunchers = map[string][]string{
	"pnpx": nil, "bunx": nil, "uvx": nil, "pipx": nil, "uv": {"tool run "},
	"pnpm": {"dlx ", "x ", "exec "}, "yarn": {"dlx ", "x ", "exec "}, "bun": {"dlx ", "x ", "exec "},
}

// otherLauncher says why a package runner other than npx is started as it is written.
func otherLauncher(command string, args []string) string {
	name, given := programName(command), strings.Join(args, " ")+" "
	begins, known := otherLaunchers[name]
	if !known || begins != nil && !slices.ContainsFunc(begins, func(words string) bool { return strings.HasPrefix(given, words) }) {
		return ""
	}
	return name + " installs packages by rules of its own; only those of npx and npm exec are installed here"
}

// parse reads the options of npx, the package and the arguments of its program. The words after
// the package belong to the program, whatever they look like.
func (n *npx) parse() (r Request, reason string) {
	words := n.words
	var plain []string
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case word == "--":
			plain, words = append(plain, words...), nil
		case !strings.HasPrefix(word, "-"):
			plain = append(plain, word)
			if !n.exec {
				plain, words = append(plain, words...), nil
			}
		default:
			var spec string
			if spec, words, reason = option(word, words); reason != "" {
				return Request{}, reason
			}
			if spec != "" {
				r.Specs = append(r.Specs, spec)
			}
		}
	}
	if len(plain) == 0 {
		return Request{}, "it names no package"
	}
	if len(r.Specs) > 0 {
		r.Bin, r.Args = plain[0], plain[1:]
	} else {
		r.Specs, r.Args = plain[:1], plain[1:]
	}
	for _, spec := range r.Specs {
		if !specForm().MatchString(spec) {
			return Request{}, spec + " is not a package of the registry"
		}
	}
	return r, ""
}

// option reads one option: --package has a value, and those that change nothing about what runs
// are skipped.
func option(word string, rest []string) (spec string, left []string, reason string) {
	name, value, hasValue := strings.Cut(word, "=")
	switch name {
	case "-y", "--yes", "-q", "--quiet", "-s", "--silent", "--prefer-offline", "--prefer-online", "--ignore-existing", "--no-update-notifier":
		if hasValue && value != "true" {
			break
		}
		return "", rest, ""
	case "-p", "--package":
		if hasValue {
			return value, rest, ""
		}
		if len(rest) > 0 {
			return rest[0], rest[1:], ""
		}
	case "-c", "--call":
		return "", nil, "npx " + name + " runs a line of a shell"
	}
	return "", nil, "npx has the option " + name
}

// specForm is the name of a package, and the version, range or tag that is asked for.
var specForm = lazyregexp.New(`^(@[A-Za-z0-9~][\w.~-]*/)?[A-Za-z0-9~][\w.~-]*(@[\w.~^<>=*|+ -]*)?$`)

// NameOf is the name of a package without the version that is asked for.
func NameOf(spec string) string {
	if at := strings.LastIndex(spec, "@"); at > 0 {
		return spec[:at]
	}
	return spec
}

// local says what npx would use instead of the registry: a program or a package of the working
// folder, or one that is installed for all, or settings of the folder.
func (r Request) local() string {
	name := NameOf(r.Specs[0])
	bin := cmp.Or(r.Bin, withoutScope(name))
	folder := r.Start.Dir
	if folder == "" {
		folder, _ = os.Getwd() // without it there is no local package
	}
	inProject := false // npm reads the settings of the nearest project alone
	for _, folder := range withParents(folder) {
		modules := filepath.Join(folder, "node_modules")
		if exists(filepath.Join(modules, ".bin", bin)) || exists(filepath.Join(modules, name, "package.json")) {
			return "npx uses what is installed in " + modules
		}
		if inProject || !exists(filepath.Join(folder, "package.json")) {
			continue
		}
		inProject = true
		if settings := filepath.Join(folder, ".npmrc"); exists(settings) {
			return "npx uses the settings in " + settings
		}
	}
	if prefix := r.globalPrefix(); prefix != "" && exists(filepath.Join(prefix, "lib", "node_modules", name, "package.json")) {
		return "npx uses what is installed in " + filepath.Join(prefix, "lib", "node_modules")
	}
	return ""
}

// withParents returns a folder and all those around it, the nearest first.
func withParents(folder string) []string {
	all := []string{folder}
	for parent := filepath.Dir(folder); parent != folder; parent = filepath.Dir(folder) {
		all, folder = append(all, parent), parent
	}
	return all
}

// globalPrefix is where npm installs packages for all.
func (r Request) globalPrefix() string {
	for _, entry := range r.Start.Env {
		if name, value, _ := strings.Cut(entry, "="); strings.EqualFold(name, "npm_config_prefix") {
			return value
		}
	}
	node, err := findIn(r.Start.Path, "node")
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(node); err == nil {
		node = real
	}
	return filepath.Dir(filepath.Dir(node))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
