"""load: files of rows → change set of a table."""
