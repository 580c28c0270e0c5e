package main

import (
	"cmp"
	"math"
	"slices"
)

// mostSweeps is far more than Jacobi's method needs.
const mostSweeps = 60

// eigenvectors returns the eigenvectors of a symmetric matrix, that of the largest
// eigenvalue first, by Jacobi's method. It changes the matrix.
func eigenvectors(m [][]float64) [][]float64 {
	columns := identity(len(m))
	for range mostSweeps {
		if isDiagonal(m) {
			break
		}
		sweep(m, columns)
	}
	order := make([]int, len(m))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m[b][b], m[a][a]) })
	sorted := make([][]float64, len(m))
	for i, column := range order {
		for _, row := range columns {
			sorted[i] = append(sorted[i], row[column])
		}
	}
	return sorted
}

func identity(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
		m[i][i] = 1
	}
	return m
}

// isDiagonal reports whether what stands beside the diagonal of a symmetric matrix is as
// good as zero.
func isDiagonal(m [][]float64) bool {
	off, diagonal := 0.0, 0.0
	for i := range m {
		diagonal += float64(m[i][i] * m[i][i])
		for j := range i {
			off += float64(m[i][j] * m[i][j])
		}
	}
	return off <= 1e-24*diagonal
}

// sweep makes each element beside the diagonal zero once; later ones disturb earlier ones a
// little.
func sweep(m, vectors [][]float64) {
	for p := range m {
		for q := p + 1; q < len(m); q++ {
			rotate(m, vectors, p, q)
		}
	}
}

// rotate makes one element of the matrix zero.
func rotate(m, vectors [][]float64, p, q int) {
	if m[p][q] == 0 {
		return
	}
	theta := (m[q][q] - m[p][p]) / (2 * m[p][q])
	t := 1 / (math.Abs(theta) + math.Sqrt(float64(theta*theta)+1))
	if theta < 0 {
		t = -t
	}
	c := 1 / math.Sqrt(float64(t*t)+1)
	s := t * c
	turn := func(a, b *float64) {
		*a, *b = float64(c**a)-float64(s**b), float64(s**a)+float64(c**b)
	}
	for k := range m {
		turn(&m[k][p], &m[k][q])
	}
	for k := range m {
		turn(&m[p][k], &m[q][k])
		turn(&vectors[k][p], &vectors[k][q])
	}
}
