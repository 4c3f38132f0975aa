//! The plan as a screen and as a page.

#[path = "common/plan.rs"]
mod plans;

use reveille_report::plan_table;

#[test]
fn look() {
    for (name, plan) in [
        ("service", plans::service()),
        ("three", plans::with_neighbours(&["batch", "search", "a-neighbour-with-a-long-name"])),
        ("nothing", plans::nothing()),
        ("without", plans::without_quota()),
    ] {
        for width in [100, 80, 60, 160] {
            println!("=== {name} {width}\n{}", plan_table(&plan, width, false));
        }
    }
}
