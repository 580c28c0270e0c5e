package web

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// compressed serves answers with gzip to clients that accept it: lists of numbers shrink
// to a tenth.
func compressed(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !acceptsGzip(r) {
			serve(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		serve(zipped{ResponseWriter: w, zip: zip}, r)
		_ = zip.Close() // the client may have disconnected
	}
}

// zipped is an answer whose body is compressed.
type zipped struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (z zipped) Write(body []byte) (int, error) { return z.zip.Write(body) }

// acceptsGzip reports whether the client accepts gzip.
func acceptsGzip(r *http.Request) bool {
	for name := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(name), ";")
		if name == "gzip" && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
