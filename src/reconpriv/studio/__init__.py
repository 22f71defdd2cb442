"""The studio: a local web app that fills a plan and calls the public API; it holds no formula."""
