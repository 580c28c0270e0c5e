package cas

// File is a content with its MIME type and the file that holds it.
type File struct {
	Hash Ref
	Size int64
	MIME string
	Path string // "" if the content is not in a file
}
