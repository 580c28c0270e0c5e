package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
)

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
