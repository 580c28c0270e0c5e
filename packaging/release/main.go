// Command release builds everything that a release consists of into one folder: binaries,
// archives, Linux packages, a container image, npm packages, .mcpb bundles, a Homebrew
// formula, the registry's server.json, SBOMs and checksums. It needs Go and npm only. It
// runs in the root of the repository.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// release is a release in the making.
type release struct {
	version string // without v
	out     string // the folder
	list    []platform
}

func main() {
	version := flag.String("version", "0.0.0-snapshot", "version of the release")
	out := flag.String("out", "dist", "folder to write to; it is emptied")
	only := flag.String("only", "", "comma-separated platforms, such as linux/amd64; all when empty")
	flag.Parse()
	r := &release{version: strings.TrimPrefix(*version, "v"), out: *out}
	for _, p := range platforms {
		if *only == "" || strings.Contains(","+*only+",", ","+p.os+"/"+p.arch+",") {
			r.list = append(r.list, p)
		}
	}
	if err := r.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes all files, in the order in which they need each other.
func (r *release) run(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	steps := []struct {
		name string
		make func(context.Context, platform) error
	}{
		{"build", r.build},
		{"archive", r.archive},
		{"SBOM", r.sbom},
		{"Linux packages", r.linuxPackages},
		{"image", r.image},
		{"npm package", r.npmPackage},
		{"mcpb bundle", r.bundle},
	}
	for _, p := range r.list {
		for _, step := range steps {
			if err := step.make(ctx, p); err != nil {
				return fmt.Errorf("%s of %s/%s: %w", step.name, p.os, p.arch, err)
			}
		}
		fmt.Printf("%s/%s done\n", p.os, p.arch)
	}
	for name, make := range map[string]func(context.Context) error{
		"npm package": r.npmMain, "server.json": r.serverJSON, "formula": r.formula,
	} {
		if err := make(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return r.checksums()
}

// path returns the path of a file in the release's folder.
func (r *release) path(elements ...string) string {
	return filepath.Join(append([]string{r.out}, elements...)...)
}

// name returns the name of a file of a platform.
func (r *release) name(p platform, ending string) string {
	return "luanette_" + r.version + "_" + p.os + "_" + p.arch + ending
}

// binary returns the path of a platform's binary, where packaging/Dockerfile finds it.
func (r *release) binary(p platform) string {
	return r.path("bin", p.os, p.arch, p.executable())
}

// executable returns the name of the binary.
func (p platform) executable() string {
	if p.os == "windows" {
		return "luanette.exe"
	}
	return "luanette"
}

// epoch is the time of all files in archives, so that the same sources give the same bytes.
var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// build compiles the static binary.
func (r *release) build(ctx context.Context, p platform) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -funcalign=16 -X main.version="+r.version, "-o", r.binary(p), "./cmd/luanette")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// file is a file in an archive.
type file struct {
	name string
	from string // a path, or "" for content
	mode os.FileMode
	data []byte
}

func (f *file) content() ([]byte, error) {
	if f.from == "" {
		return f.data, nil
	}
	return os.ReadFile(f.from)
}

// archive writes what people download: the binary with licence and README.
func (r *release) archive(_ context.Context, p platform) error {
	files := []file{{name: p.executable(), from: r.binary(p), mode: 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		files = append(files, file{name: name, from: name, mode: 0o644})
	}
	if p.os == "windows" {
		return writeZip(r.path(r.name(p, ".zip")), files)
	}
	return writeTarGz(r.path(r.name(p, ".tar.gz")), files)
}

func writeZip(path string, files []file) error {
	return create(path, func(w io.Writer) error {
		archive := zip.NewWriter(w)
		for _, f := range files {
			data, err := f.content()
			if err != nil {
				return err
			}
			header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: epoch}
			header.SetMode(f.mode)
			entry, err := archive.CreateHeader(header)
			if err != nil {
				return err
			}
			if _, err := entry.Write(data); err != nil {
				return err
			}
		}
		return archive.Close()
	})
}

func writeTarGz(path string, files []file) error {
	return create(path, func(w io.Writer) error {
		compressed := gzip.NewWriter(w)
		return errors.Join(writeTar(compressed, files), compressed.Close())
	})
}

// writeTar writes files; a name that ends in a slash is a folder.
func writeTar(w io.Writer, files []file) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		data, err := f.content()
		if err != nil {
			return err
		}
		header := &tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(data)), ModTime: epoch, Format: tar.FormatPAX}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
			header.Uid, header.Gid = ownerOf(f.name)
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// create writes a file and its folder.
func create(path string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}

// checksums writes the SHA-256 of every file that is published, as sha256sum does.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines []string
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		sum, err := sha256Of(r.path(entry.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%s  %s\n", sum, entry.Name()))
	}
	slices.Sort(lines)
	return os.WriteFile(r.path("checksums.txt"), []byte(strings.Join(lines, "")), 0o644)
}

func sha256Of(path string) (string, error) {
	data, err := os.ReadFile(path)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}
