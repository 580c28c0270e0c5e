package main

import (
	"math"
	"slices"
)

// mostSweeps is far more than Jacobi's method needs.
const mostSweeps = 60

// eigenvectors returns the eigenvectors of a symmetric matrix, that of the largest
// eigenvalue first, by Jacobi's method. It changes the matrix.
func eigenvectors(m [][]float64) [][]float64 {
	n := len(m)
	vectors := make([][]float64, n) // in columns
	for i := range vectors {
		vectors[i] = make([]float64, n)
		vectors[i][i] = 1
	}
	for range mostSweeps {
		off, diagonal := 0.0, 0.0
		for i := range n {
			diagonal += float64(m[i][i] * m[i][i])
			for j := range i {
				off += float64(m[i][j] * m[i][j])
			}
		}
		if off <= 1e-24*diagonal {
			break
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				rotate(m, vectors, p, q)
			}
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case m[a][a] > m[b][b]:
			return -1
		case m[a][a] < m[b][b]:
			return 1
		}
		return 0
	})
	sorted := make([][]float64, n)
	for i, column := range order {
		for j := range n {
			sorted[i] = append(sorted[i], vectors[j][column])
		}
	}
	return sorted
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
