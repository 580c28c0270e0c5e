package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// linuxPackages writes .deb and .rpm from packaging/nfpm.yaml.
func (r *release) linuxPackages(_ context.Context, p platform) error {
	if p.os != "linux" {
		return nil
	}
	values := map[string]string{"ARCH": p.arch, "VERSION": r.version, "BINARY": r.binary(p)}
	config, err := nfpm.ParseFileWithEnvMapping("packaging/nfpm.yaml", func(name string) string { return values[name] })
	if err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		info, err := config.Get(format)
		if err != nil {
			return err
		}
		info = nfpm.WithDefaults(info)
		info.MTime = epoch
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		name := r.path(packager.ConventionalFileName(info))
		if err := create(name, func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
			_ = os.Remove(name) // incomplete
			return err
		}
	}
	return nil
}

// nonroot is the user of the image, as in distroless images.
const nonroot = 65532

// ownerOf returns the owner of a folder in the image.
func ownerOf(folder string) (uid, gid int) {
	if folder == "data/" || folder == "home/" {
		return nonroot, nonroot
	}
	return 0, 0
}

// descriptor points to a blob of the image.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// image writes an OCI image as one file, which `docker load`, `podman load` and `skopeo`
// read. It has the layout of packaging/Dockerfile without the base image's extras: the
// binary, certificates of this machine's authorities, an empty data folder.
func (r *release) image(_ context.Context, p platform) error {
	if p.os != "linux" {
		return nil
	}
	files, err := r.imageFiles(p)
	if err != nil {
		return err
	}
	var layer, plain bytes.Buffer
	zipped := gzip.NewWriter(&layer)
	if err := writeTar(io.MultiWriter(zipped, &plain), files); err != nil {
		return err
	}
	if err := zipped.Close(); err != nil {
		return err
	}
	blobs := &blobs{}
	config := blobs.addJSON("application/vnd.oci.image.config.v1+json", imageConfig(p, digest(plain.Bytes())))
	manifest := blobs.addJSON("application/vnd.oci.image.manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
		"layers": []descriptor{blobs.add("application/vnd.oci.image.layer.v1.tar+gzip", layer.Bytes())},
	})
	manifest.Platform = map[string]string{"os": p.os, "architecture": p.arch}
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": "luanette:" + r.version}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})
	if err != nil {
		return err
	}
	all := append(blobs.files,
		file{name: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		file{name: "index.json", mode: 0o644, data: index})
	return create(r.path(r.name(p, ".oci.tar")), func(w io.Writer) error { return writeTar(w, all) })
}

func (r *release) imageFiles(p platform) ([]file, error) {
	files := []file{
		{name: "data/", mode: 0o700},
		{name: "home/", mode: 0o700},
		{name: "tmp/", mode: 0o777},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home:/sbin/nologin\n")},
		{name: "usr/bin/luanette", from: r.binary(p), mode: 0o755},
	}
	const authorities = "etc/ssl/certs/ca-certificates.crt"
	if _, err := os.Stat("/" + authorities); err == nil {
		files = append(files, file{name: authorities, from: "/" + authorities, mode: 0o644})
	}
	return files, nil
}

// imageConfig says how the image runs, as packaging/Dockerfile does.
func imageConfig(p platform, layer string) map[string]any {
	return map[string]any{
		"os": p.os, "architecture": p.arch,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer}},
		"config": map[string]any{
			"User": "65532:65532", "Entrypoint": []string{"/usr/bin/luanette"}, "Cmd": []string{"serve"},
			"Env":     []string{"HOME=/home", "LUANETTE_DATA=/data", "LUANETTE_LISTEN=0.0.0.0:8081"},
			"Volumes": map[string]any{"/data": struct{}{}}, "ExposedPorts": map[string]any{"8081/tcp": struct{}{}},
		},
	}
}

// blobs are the contents of an image, by digest.
type blobs struct{ files []file }

func (b *blobs) add(media string, data []byte) descriptor {
	d := digest(data)
	b.files = append(b.files, file{name: filepath.ToSlash(filepath.Join("blobs", strings.Replace(d, ":", "/", 1))), mode: 0o644, data: data})
	return descriptor{MediaType: media, Digest: d, Size: len(data)}
}

func (b *blobs) addJSON(media string, v any) descriptor {
	data, _ := json.Marshal(v) // maps and strings always encode
	return b.add(media, data)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// The parts of CycloneDX 1.6 that are written.
type (
	bom struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl"`
	}
)

// sbom writes which modules a binary was built from, as the binary itself says.
func (r *release) sbom(_ context.Context, p platform) error {
	info, err := buildinfo.ReadFile(r.binary(p))
	if err != nil {
		return err
	}
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{moduleOf("application", info.Main.Path, r.version)}}
	b.Components = append(b.Components, moduleOf("library", "stdlib", info.GoVersion))
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		b.Components = append(b.Components, moduleOf("library", dep.Path, dep.Version))
	}
	return create(r.path(r.name(p, ".cdx.json")), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(b)
	})
}

func moduleOf(kind, path, version string) component {
	url := "pkg:golang/" + path + "@" + version
	return component{kind, url, path, version, url}
}

// npmPlatform returns a platform as Node names it.
func (p platform) npmPlatform() (system, cpu string) {
	system, cpu = p.os, p.arch
	if system == "windows" {
		system = "win32"
	}
	if cpu == "amd64" {
		cpu = "x64"
	}
	return system, cpu
}

// npmName returns the npm package that carries a platform's binary.
func (p platform) npmName() string {
	system, cpu := p.npmPlatform()
	return "@luanette/" + system + "-" + cpu
}

// npmPackage packs a platform's binary.
func (r *release) npmPackage(ctx context.Context, p platform) error {
	system, cpu := p.npmPlatform()
	folder := r.path("npm", system+"-"+cpu)
	return r.pack(ctx, folder, map[string]any{
		"name": p.npmName(), "version": r.version, "description": "The luanette binary for " + system + " on " + cpu + ".",
		"license": "Apache-2.0", "repository": repository, "os": []string{system}, "cpu": []string{cpu}, "files": []string{"bin"},
	}, file{name: "bin/" + p.executable(), from: r.binary(p), mode: 0o755})
}

// npmMain packs the package that people name: `npx luanette`.
func (r *release) npmMain(ctx context.Context) error {
	binaries := map[string]string{}
	for _, p := range r.list {
		binaries[p.npmName()] = r.version
	}
	return r.pack(ctx, r.path("npm", "luanette"), map[string]any{
		"name": "luanette", "version": r.version, "description": "One server in front of all your MCP servers.", "mcpName": "io.github.luanette/luanette",
		"license": "Apache-2.0", "repository": repository, "bin": map[string]string{"luanette": "luanette.js"}, "engines": map[string]string{"node": ">=18"},
		"files": []string{"luanette.js"}, "optionalDependencies": binaries,
	}, file{name: "luanette.js", from: "packaging/npm/luanette.js", mode: 0o755}, file{name: "README.md", from: "README.md", mode: 0o644})
}

var repository = map[string]string{"type": "git", "url": "git+https://github.com/luanette/luanette.git"}

// pack writes a package's files into a folder and packs it for publishing.
func (r *release) pack(ctx context.Context, folder string, about map[string]any, files ...file) error {
	data, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	for _, f := range append(files, file{name: "package.json", mode: 0o644, data: data}) {
		content, err := f.content()
		if err != nil {
			return err
		}
		path := filepath.Join(folder, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, f.mode); err != nil {
			return err
		}
	}
	out, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "npm", "pack", "--silent", "--pack-destination", out)
	cmd.Dir = folder
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack: %w\n%s", err, text)
	}
	return nil
}
