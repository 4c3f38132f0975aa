pub fn plan_html(_plan: &reveille_plan::Plan) -> String { super::data::block() }
