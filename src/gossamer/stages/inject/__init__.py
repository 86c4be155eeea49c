"""inject: seed lists → change set of the crawldb."""
