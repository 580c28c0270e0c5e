package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

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
