import { defineConfig } from '@playwright/test'

export default defineConfig({ testDir: '.', timeout: 300_000, workers: 1, reporter: [['list']], outputDir: '../../../.cache/web/results' })
