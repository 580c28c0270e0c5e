module github.com/luanette/luanette

go 1.26
