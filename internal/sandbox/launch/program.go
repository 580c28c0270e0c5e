package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemPaths are what every program needs to start: libraries, certificates, names.
func systemPaths() []string {
	paths := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store"}
	for _, name := range []string{
		"alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "fonts", "gai.conf", "group", "host.conf", "hostname", "hosts",
		"java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "machine-id", "mime.types", "nsswitch.conf", "os-release",
		"passwd", "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "protocols", "resolv.conf", "services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf",
		"terminfo", "timezone",
	} {
		paths = append(paths, "/etc/"+name)
	}
	return paths
}

// programPaths are the files of a program: itself, its runtime, and the package of each
// file among its arguments.
func (l *Launcher) programPaths(p Program) []string {
	paths := l.packageOf(p.Path)
	for _, arg := range p.Args[min(1, len(p.Args)):] {
		if strings.HasPrefix(arg, "-") {
			_, arg, _ = strings.Cut(arg, "=")
		}
		if arg == "" {
			continue
		}
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(p.dir(), arg)
		}
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() && filepath.IsAbs(arg) {
			paths = append(paths, l.packageOf(arg)...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// dir is the working folder.
func (p Program) dir() string {
	if p.Dir == "" {
		folder, _ := os.Getwd() // without it, no relative path is found
		return folder
	}
	return p.Dir
}

// packageOf is a file with the folder of the package that it belongs to, as it is named
// and where its symbolic links lead to.
func (l *Launcher) packageOf(file string) []string {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil
	}
	paths := []string{file, l.packageRoot(file)}
	if real, err := filepath.EvalSymlinks(file); err == nil && real != file {
		paths = append(paths, real, l.packageRoot(real))
	}
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" })
}

// packageRoot is the folder of a file's package; empty if the file is on its own.
func (l *Launcher) packageRoot(file string) string {
	if at := strings.Index(file, "/node_modules/"); at >= 0 {
		return file[:at+len("/node_modules")]
	}
	parent := filepath.Dir(file)
	for folder := parent; !l.tooWide(folder); folder = filepath.Dir(folder) {
		for _, sign := range []string{"package.json", "pyvenv.cfg", "pyproject.toml", "deno.json"} {
			if _, err := os.Stat(filepath.Join(folder, sign)); err == nil {
				return folder
			}
		}
	}
	prefix := filepath.Dir(parent) // of an installation such as ~/.nvm/versions/node/v22
	if filepath.Base(parent) == "bin" && !l.tooWide(prefix) && filepath.Base(prefix) != ".local" {
		return prefix
	}
	if l.tooWide(parent) {
		return ""
	}
	return parent
}

// tooWide reports whether a folder holds more than programs.
func (l *Launcher) tooWide(folder string) bool {
	if folder == l.Home || folder == filepath.Dir(l.Home) || folder == os.TempDir() || strings.Count(folder, "/") < 2 {
		return true
	}
	return slices.Contains([]string{"/usr/bin", "/usr/sbin", "/usr/local", "/usr/local/bin", "/var/tmp"}, folder)
}
