"""Open a page in Chromium repeatedly and print the milliseconds until it was ready."""

import sys

from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
page_file, rounds, browser = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with sync_playwright() as driver:
    chromium = driver.chromium.launch(executable_path=browser, args=[*FLAGS, "--disable-sync", "--no-first-run"])
    for _ in range(rounds):
        page = chromium.new_page()
        page.goto("file://" + page_file)
        page.wait_for_selector('html[data-ready="1"]', state="attached")
        print(page.evaluate("performance.getEntriesByName('laggard-ready')[0].startTime"))
        page.close()
    chromium.close()
