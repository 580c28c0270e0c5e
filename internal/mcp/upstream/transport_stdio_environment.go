package upstream

import (
	"fmt"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Inherited lists the variables that a child process gets from us, as patterns: what
// programs and package runners need to work as in a terminal. docs/upstreams.md says
// why each is needed.
func Inherited() []string {
	list := []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TERM", "TMPDIR", "XDG_*",
		"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
		"NPM_CONFIG_*", "UV_*", "PIP_*", "npm_config_*", "uv_*", "pip_*",
	}
	if runtime.GOOS == "windows" {
		list = append(list, "COMSPEC", "PATHEXT", "SYSTEMDRIVE", "WINDIR", "OS", "NUMBER_OF_PROCESSORS", "PROCESSOR_*",
			"TEMP", "TMP", "USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
			"ALLUSERSPROFILE", "PROGRAMFILES*", "COMMONPROGRAMFILES*")
	}
	return list
}

// alwaysInherited are the variables without which no program starts.
func alwaysInherited() []string {
	if runtime.GOOS == "windows" {
		return []string{"SYSTEMROOT"}
	}
	return nil
}

// childEnv is the environment of a child process: the inherited variables, then
// those of the spec's file, then its own.
func (o *Options) childEnv(spec Spec) ([]string, error) {
	vars := o.inheritedBy(spec)
	if spec.EnvFile != "" {
		text, err := os.ReadFile(spec.EnvFile)
		if err != nil {
			return nil, fmt.Errorf("read env file: %w", err)
		}
		declared, err := parseEnvFile(string(text))
		if err != nil {
			return nil, fmt.Errorf("read env file %s: %w", spec.EnvFile, err)
		}
		maps.Copy(vars, declared)
	}
	for name, value := range spec.Env {
		found, err := o.reveal(spec, value)
		if err != nil {
			return nil, fault.Wrap(fault.NeedsAuth, err, "variable %s of %s", name, spec.Name).WithHint("%s", fault.HintOf(err))
		}
		vars[name] = found
	}
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env, nil
}

// inheritedBy are the variables of our environment that the spec's process gets.
func (o *Options) inheritedBy(spec Spec) map[string]string {
	patterns := slices.Concat(alwaysInherited(), spec.InheritEnv)
	if !spec.CleanEnv {
		patterns = append(patterns, Inherited()...)
	}
	vars := map[string]string{}
	for _, entry := range o.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if name != "" && slices.ContainsFunc(patterns, func(p string) bool { return matchesVariable(p, name) }) {
			vars[name] = value
		}
	}
	return vars
}

// matchesVariable reports whether a pattern matches the name of a variable. On
// Windows case does not matter.
func matchesVariable(pattern, name string) bool {
	if runtime.GOOS == "windows" {
		pattern, name = strings.ToUpper(pattern), strings.ToUpper(name)
	}
	matched, err := path.Match(pattern, name)
	return matched && err == nil
}

// searchPath is the PATH in which the program of a process is looked up: its own, or
// ours if it has none.
func (o *Options) searchPath(env []string) string {
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); matchesVariable("PATH", name) {
			return value
		}
	}
	ours, _ := o.Getenv("PATH")
	return ours
}
