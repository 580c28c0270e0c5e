package llmtest

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
)

// transcribe is OpenAI's transcription API. The text is what the file contains, and its
// format; a file that contains "fail" is refused.
func (s *Server) transcribe(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, text string) {
		writeJSON(w, status, "", object{"error": object{"message": text, "type": "invalid_request_error", "param": nil, "code": nil}})
	}
	if r.Header.Get("Authorization") != "Bearer "+Key {
		refuse(http.StatusUnauthorized, "Incorrect API key provided")
		return
	}
	file, header, err := r.FormFile("file")
	if err != nil || r.FormValue("model") == "" {
		refuse(http.StatusBadRequest, "file and model are required")
		return
	}
	defer file.Close()
	format := path.Ext(header.Filename)
	if !slices.Contains([]string{".flac", ".m4a", ".mp3", ".mp4", ".mpeg", ".mpga", ".oga", ".ogg", ".wav", ".webm"}, format) {
		refuse(http.StatusBadRequest, fmt.Sprintf("Invalid file format %q", format))
		return
	}
	data, err := io.ReadAll(file)
	if err != nil || string(data) == "fail" {
		refuse(http.StatusBadRequest, "the audio could not be decoded")
		return
	}
	writeJSON(w, http.StatusOK, "", object{"text": fmt.Sprintf("%s in %s", data, format[1:])})
}
