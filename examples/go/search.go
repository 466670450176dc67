package main

import (
	"context"
	"fmt"
	"hash/fnv"
)

// search ranks the catalogue for a number of words and returns the best product.
func search(ctx context.Context, words int) (best string) {
	ctx, end := startSpan(ctx, "catalogue.rank")
	defer end()
	withSpanLabels(ctx, func(context.Context) {
		for i := range words {
			best = rankProducts(fmt.Sprintf("word-%d", i))
		}
	})
	return best
}

//go:noinline
func rankProducts(word string) (best string) {
	var highest uint64
	for number := range 2000 {
		product := fmt.Sprintf("product-%04d", number)
		if score := similarity(word, product); score >= highest {
			highest, best = score, product
		}
	}
	return best
}

func similarity(word, product string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(word))
	hash.Write([]byte(product))
	return hash.Sum64()
}
